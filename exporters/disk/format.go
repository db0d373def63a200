package disk

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// Format is the layout version of new stores, and the latest version that can be read.
const Format = directory.Version

// CheckFormat reports whether a folder has a store, and returns an error if this program cannot
// read it. It changes nothing, and another process may use the folder meanwhile.
func CheckFormat(files vfs.FS, folder string) (exists bool, err error) {
	_, err = directory.OpenReadOnly(files, filepath.ToSlash(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
