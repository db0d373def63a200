package directory

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// reserveStep is the number of bytes per write of the reserve.
const reserveStep = 1 << 20

// Reserve sets the size of the reserve; 0 removes it. It writes all bytes, because a sparse file
// would not reserve space. After an error, the reserve is as large as the disk allowed.
func (d *Dir) Reserve(size int64) error {
	if size == 0 {
		return d.ReleaseReserve()
	}
	f, err := d.fs.OpenWrite(d.in(reserveFile))
	if errors.Is(err, fs.ErrNotExist) {
		f, err = d.fs.Create(d.in(reserveFile))
	}
	if err != nil {
		return fmt.Errorf("creating the disk reserve: %w", err)
	}
	if err := errors.Join(fill(f, size), f.Close()); err != nil {
		return fmt.Errorf("creating the disk reserve: %w", err)
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

// ReleaseReserve removes the reserve, if there is one, to free its space.
func (d *Dir) ReleaseReserve() error {
	if err := d.fs.Remove(d.in(reserveFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("deleting the disk reserve: %w", err)
	}
	return d.fs.SyncDir(d.path)
}
