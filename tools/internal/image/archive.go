package image

import (
	"archive/tar"
	"io/fs"
	"os"
	"path/filepath"
)

// archive writes the files below dir, in alphabetical order and without times, to the tar file out.
func archive(dir, out string) (err error) {
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	defer func() {
		if closed := file.Close(); err == nil {
			err = closed
		}
		if err != nil {
			os.Remove(out) //nolint:errcheck // the first error counts
		}
	}()
	w := tar.NewWriter(file)
	if err := addTree(w, dir, dir); err != nil {
		return err
	}
	return w.Close()
}

// addTree adds the files and folders below dir, in alphabetical order, with their names below root.
// dir itself is added unless it is root.
func addTree(w *tar.Writer, root, dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return addFolder(w, filepath.ToSlash(name), 0)
		}
		return addFile(w, filepath.ToSlash(name), path, modeFile)
	})
}
