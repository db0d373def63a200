package wal

import (
	"fmt"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// part is a part file that is being written. After an error it must not be used but for close: what a file holds after a failed write
// or sync is unknown, and a later sync that succeeds proves nothing.
type part struct {
	file vfs.File
	pos  int64 // where the next group goes: a multiple of groupUnit
	size int64 // up to here the file has been written before, so that overwriting it changes no metadata
	opts *Options
	zero []byte // zeros to fill with
}

// write appends groups, whose length must be a multiple of groupUnit, and fills on ahead of them when they made the file grow.
func (p *part) write(groups []byte) error {
	if _, err := p.file.WriteAt(groups, p.pos); err != nil {
		return fmt.Errorf("append to log: %w", err)
	}
	p.pos += int64(len(groups))
	if p.pos <= p.size {
		return nil
	}
	p.size = p.pos
	return p.fill()
}

// fill writes zeros up to the next multiple of the step, unless the file has its full size already. Truncate would not do: a sync of
// data in a hole has to write metadata as well, which costs several times as much.
func (p *part) fill() error {
	end := min(roundUp(p.size+1, p.opts.Step), p.opts.Size)
	for p.size < end {
		n := min(end-p.size, int64(len(p.zero)))
		if _, err := p.file.WriteAt(p.zero[:n], p.size); err != nil {
			return fmt.Errorf("preallocate log: %w", err)
		}
		p.size += n
	}
	return nil
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
