package wal

import (
	"fmt"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// part is a part file that is being written. After an error only close may be called: the content
// of a file after a failed write or sync is unknown, and a later successful sync proves nothing.
type part struct {
	file vfs.File
	pos  int64 // position of the next group: a multiple of groupUnit
	size int64 // size of the file; overwriting below it changes no metadata
	opts *Options
	zero []byte // zeros to fill with
}

// write appends groups, whose length is a multiple of groupUnit.
func (p *part) write(groups []byte) error {
	if err := p.reserve(int64(len(groups))); err != nil {
		return err
	}
	if _, err := p.file.WriteAt(groups, p.pos); err != nil {
		return fmt.Errorf("append to log: %w", err)
	}
	p.pos += int64(len(groups))
	return nil
}

// reserve extends the file if it does not have space for n more bytes and, after them, for
// groupUnit bytes that are not part of a group. A file that ends earlier was truncated: recovery
// relies on that. So the new size is durable before a group is written.
func (p *part) reserve(n int64) error {
	if end := p.pos + n + groupUnit; end > p.size {
		return p.fill(end)
	}
	return nil
}

// smallStep replaces Options.Step in files that have their full size.
const smallStep = 256 << 10

// fill writes zeros up to end, and further to the next multiple of the step, and syncs them.
// Truncate is no alternative: syncing data in a hole also writes metadata, which is several times
// as expensive.
func (p *part) fill(end int64) error {
	if end <= p.opts.Size {
		end = min(roundUp(end, p.opts.Step), p.opts.Size)
	} else {
		end = roundUp(end, min(p.opts.Step, smallStep))
	}
	for p.size < end {
		n := min(end-p.size, int64(len(p.zero)))
		if _, err := p.file.WriteAt(p.zero[:n], p.size); err != nil {
			return fmt.Errorf("preallocate log: %w", err)
		}
		p.size += n
	}
	if p.opts.Mode == SyncOS && p.pos > 0 {
		return nil
	}
	return p.sync()
}

func (p *part) sync() error {
	if err := p.file.Sync(); err != nil {
		return fmt.Errorf("sync log: %w", err)
	}
	return nil
}

func (p *part) close() error {
	if err := p.file.Close(); err != nil {
		return fmt.Errorf("close log: %w", err)
	}
	return nil
}
