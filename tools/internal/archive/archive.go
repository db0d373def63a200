// Package archive writes archives whose bytes depend only on their files and a time.
package archive

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"
)

// File is a file of an archive.
type File struct {
	Name    string // with slashes
	Content []byte
	Mode    int64 // permissions
}

// Write writes the files to an archive in their order, within a folder. The ending of the name of
// the archive selects its format: .tar.gz, .tgz or .zip.
func Write(name, folder string, at time.Time, files []File) (err error) {
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if closing := out.Close(); err == nil {
			err = closing
		}
	}()
	switch {
	case strings.HasSuffix(name, ".tar.gz"), strings.HasSuffix(name, ".tgz"):
		return writeTar(out, folder, at, files)
	case strings.HasSuffix(name, ".zip"):
		return writeZip(out, folder, at, files)
	}
	return fmt.Errorf("archive %s: ending is not .tar.gz, .tgz or .zip", name)
}

func writeTar(w io.Writer, folder string, at time.Time, files []File) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: path.Join(folder, f.Name), Size: int64(len(f.Content)), Mode: f.Mode,
			ModTime: at.Truncate(time.Second), Format: tar.FormatUSTAR, Uname: "root", Gname: "root",
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.Content); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}

func writeZip(w io.Writer, folder string, at time.Time, files []File) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		h := &zip.FileHeader{Name: path.Join(folder, f.Name), Method: zip.Deflate, Modified: at.UTC()}
		h.SetMode(os.FileMode(f.Mode))
		entry, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := entry.Write(f.Content); err != nil {
			return err
		}
	}
	return z.Close()
}
