package certs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// maxFile is the greatest size of a file, in bytes: the roots of a whole system take a quarter of it.
const maxFile = 1 << 20

// Options say when and how files are read again.
type Options struct {
	// Interval is how old what is known of the files may be; 0: they are read once.
	Interval time.Duration
	// Now is the clock.
	Now func() time.Time
	// Report is told when new files cannot be used (once per error), and with nil when they can again.
	Report func(err error)
}

// Logged returns options by which a component goes on with what it has when new files are wrong, and says so in its log. what is what the
// files hold, in the plural.
func Logged(log *zap.Logger, now func() time.Time, what string, interval time.Duration) Options {
	return Options{Interval: interval, Now: now, Report: func(err error) {
		if err != nil {
			log.Warn("new "+what+" cannot be used; those read before stay in force", zap.Error(err))
			return
		}
		log.Info("new " + what + " are in force")
	}}
}

// Follower is a value made of files, which is made again when their contents change. It is safe for concurrent use after Load.
type Follower[T any] struct {
	files []string
	opts  Options
	parse func(contents [][]byte) (T, error)

	current atomic.Pointer[T]

	mu      sync.Mutex // held by the one who looks at the files
	checked time.Time
	loaded  [][]byte // what current was made of
	failure string   // the error reported last
}

// Follow returns a follower of files that parse makes a value of. parse gets the contents in the order of the names, nil for the name "",
// and may keep them. Its errors should name the file.
func Follow[T any](files []string, o Options, parse func(contents [][]byte) (T, error)) *Follower[T] {
	return &Follower[T]{files: files, opts: o, parse: parse}
}

// Load reads the files for the first time; it must have returned nil before Get is called. The error names the file.
func (f *Follower[T]) Load() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checked = f.opts.Now()
	return f.reload()
}

// Get returns the value that holds now.
func (f *Follower[T]) Get() T {
	// Whoever comes while another one reads goes on with what was good a moment ago, so a slow disk delays one caller.
	if f.opts.Interval > 0 && f.mu.TryLock() {
		defer f.mu.Unlock()
		f.refresh()
	}
	return *f.current.Load()
}

// refresh reads the files if that is due. f.mu is held.
func (f *Follower[T]) refresh() {
	now := f.opts.Now()
	if now.Sub(f.checked) < f.opts.Interval {
		return
	}
	f.checked = now
	err := f.reload()
	switch {
	case err == nil && f.failure != "":
		f.failure = ""
		f.opts.Report(nil)
	case err != nil && f.failure != err.Error():
		f.failure = err.Error()
		f.opts.Report(err)
	}
}

// reload puts the files into force, if they changed and are good. f.mu is held.
func (f *Follower[T]) reload() error {
	contents := make([][]byte, len(f.files))
	var errs []error
	for i, name := range f.files {
		var err error
		if contents[i], err = readFile(name); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if f.current.Load() != nil && slices.EqualFunc(contents, f.loaded, bytes.Equal) {
		return nil
	}
	v, err := f.parse(contents)
	if err != nil {
		return err
	}
	f.loaded = contents
	f.current.Store(&v)
	return nil
}

// readFile returns nothing for no file. The error names the file.
func readFile(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxFile)
	}
	return b, err
}
