package bench

import (
	"io/fs"
	"path/filepath"
	"strings"
)

// FileBytes returns the size of all files below dir whose names end with suffix, in bytes.
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
