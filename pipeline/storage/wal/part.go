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

// write appends groups, whose length is a multiple of groupUnit, and extends the zero-filled area
// if the file grew.
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

// fill writes zeros up to the next multiple of the step, unless the file has its full size.
// Truncate is no alternative: syncing data in a hole also writes metadata, which is several times
// as expensive.
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
