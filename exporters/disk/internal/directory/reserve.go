package directory

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// reserveStep is how much of the reserve is written at once.
const reserveStep = 1 << 20

// Reserve makes the reserve as long as size, or removes it for 0. It really writes the bytes: a sparse file would reserve nothing. An
// error leaves the reserve as long as the disk allowed.
func (d *Dir) Reserve(size int64) error {
	if size == 0 {
		return d.GiveUpReserve()
	}
	f, err := d.fs.OpenWrite(d.in(reserveFile))
	if errors.Is(err, fs.ErrNotExist) {
		f, err = d.fs.Create(d.in(reserveFile))
	}
	if err != nil {
		return fmt.Errorf("making the reserve: %w", err)
	}
	if err := errors.Join(fill(f, size), f.Close()); err != nil {
		return fmt.Errorf("making the reserve: %w", err)
	}
	return d.fs.SyncDir(d.path)
}

func fill(f vfs.File, size int64) error {
	have, err := f.Size()
	if err != nil {
		return err
	}
	if have > size {
		return f.Truncate(size)
	}
	zeros := make([]byte, min(reserveStep, size-have))
	for have < size {
		n, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-have)], have)
		have += int64(n)
		if err != nil {
			return err
		}
	}
	return f.Sync()
}

// GiveUpReserve frees the space of the reserve. It is no error if there is none.
func (d *Dir) GiveUpReserve() error {
	if err := d.fs.Remove(d.in(reserveFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("giving up the reserve: %w", err)
	}
	return d.fs.SyncDir(d.path)
}
