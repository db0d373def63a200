package bench

import (
	"io/fs"
	"path/filepath"
	"strings"
)

// FileBytes returns the total size in bytes of the files in dir and its subdirectories whose names
// end with suffix.
func FileBytes(dir, suffix string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(d.Name(), suffix) {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}
