//go:build unix

package vfs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

func TestOthersCannotReadTheFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	if err := vfs.OS().MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	f, err := vfs.OS().Create(dir + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{dir, dir + "/f"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o007 != 0 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}
