package storetool

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// progress prints the progress of a command once a second.
type progress struct {
	out   io.Writer
	what  string
	total int64
	done  func() int64
	text  func(n int64) string // formats an amount
	now   func() time.Time
	began time.Time
	next  time.Time
}

const progressStep = time.Second

func newProgress(out io.Writer, what string, total int64, done func() int64, text func(int64) string, now func() time.Time) *progress {
	p := &progress{out: out, what: what, total: total, done: done, text: text, now: now, began: now()}
	p.next = p.began.Add(progressStep)
	return p
}

// step prints a line if a second has passed since the last one. It is cheap enough to call often.
func (p *progress) step() {
	now := p.now()
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(progressStep)
	done := min(p.done(), p.total)
	speed := float64(done) / now.Sub(p.began).Seconds()
	fmt.Fprintf(p.out, "%s: %d %% of %s, %s/s\n", p.what, 100*done/max(p.total, 1), p.text(p.total), p.text(int64(speed)))
}

// countingFS counts the bytes that are read through it.
type countingFS struct {
	vfs.FS
	read *atomic.Int64
}

// Open implements vfs.FS.
func (c countingFS) Open(name string) (vfs.File, error) {
	f, err := c.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return countingFile{f, c.read}, nil
}

type countingFile struct {
	vfs.File
	read *atomic.Int64
}

// ReadAt implements vfs.File.
func (c countingFile) ReadAt(b []byte, offset int64) (int, error) {
	n, err := c.File.ReadAt(b, offset)
	c.read.Add(int64(n))
	return n, err
}
