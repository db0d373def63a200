package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// docs is the folder of licenses in the image, as in packages for Linux.
const docs = "usr/share/doc/tracing"

// Modes of files in the image, whatever the modes in the working copy are.
const (
	modeFile       = 0o644
	modeExecutable = 0o755 // also of folders
)

// rootfsLayer returns the layer with the files below root, and the data folder of the user.
func rootfsLayer(root string) (v1.Layer, error) {
	return layer(func(w *tar.Writer) error {
		if err := addTree(w, root, filepath.Join(root, "etc")); err != nil {
			return err
		}
		return addFolder(w, dataDir[1:], user)
	})
}

// programLayer returns the layer with the program at path, and licenses.
func programLayer(path string, licenses []string) (v1.Layer, error) {
	return layer(func(w *tar.Writer) error {
		if err := addFolders(w, "usr", "usr/bin"); err != nil {
			return err
		}
		if err := addFile(w, program[1:], path, modeExecutable); err != nil || len(licenses) == 0 {
			return err
		}
		if err := addFolders(w, "usr/share", "usr/share/doc", docs); err != nil {
			return err
		}
		for _, l := range licenses {
			if err := addFile(w, docs+"/"+filepath.Base(l), l, modeFile); err != nil {
				return err
			}
		}
		return nil
	})
}

// layer returns a layer with the files that write adds. It keeps the uncompressed layer in memory.
func layer(write func(*tar.Writer) error) (v1.Layer, error) {
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	if err := write(w); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil })
}

// addFolders adds folders of the user root.
func addFolders(w *tar.Writer, names ...string) error {
	for _, name := range names {
		if err := addFolder(w, name, 0); err != nil {
			return err
		}
	}
	return nil
}

func addFolder(w *tar.Writer, name string, owner int) error {
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: modeExecutable, Uid: owner, Gid: owner})
}

func addFile(w *tar.Writer, name, source string, mode int64) error {
	content, err := os.ReadFile(source)
	if err != nil {
		return fmt.Errorf("%s of the image: %w", name, err)
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err = w.Write(content)
	return err
}
