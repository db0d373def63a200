package vfs_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

func TestWriteFileAtomic(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{"OS": vfs.OS(), "Mem": vfstest.NewMem()} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := fsys.MkdirAll(dir); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"first", "", "and a third, longer one"} {
				if err := vfs.WriteFileAtomic(fsys, dir+"/f", []byte(want)); err != nil {
					t.Fatal(err)
				}
				got, err := vfs.ReadFile(fsys, dir+"/f", 100)
				if err != nil || string(got) != want {
					t.Errorf("read %q, %v, want %q", got, err, want)
				}
			}
			entries, err := fsys.ReadDir(dir)
			if err != nil || len(entries) != 1 {
				t.Errorf("directory holds %v, %v", entries, err)
			}
		})
	}
}

// Whatever fails, the old content stays, nothing is left open, and the next write succeeds.
func TestWriteFileAtomicFails(t *testing.T) {
	for _, op := range []vfstest.Op{vfstest.OpCreate, vfstest.OpWrite, vfstest.OpSync, vfstest.OpClose, vfstest.OpRename} {
		t.Run(op.String(), func(t *testing.T) {
			m := vfstest.NewMem()
			if err := vfs.WriteFileAtomic(m, "/f", []byte("old")); err != nil {
				t.Fatal(err)
			}
			broken := vfstest.Inject(m, &vfstest.Rule{Op: op, Err: vfstest.ErrIO})
			if err := vfs.WriteFileAtomic(broken, "/f", []byte("new")); !errors.Is(err, vfstest.ErrIO) {
				t.Errorf("error %v", err)
			}
			if got, err := vfs.ReadFile(m, "/f", 100); err != nil || string(got) != "old" {
				t.Errorf("after the failure %q, %v", got, err)
			}
			if entries, err := m.ReadDir("/"); err != nil || len(entries) != 1 || m.Handles() != 0 {
				t.Errorf("left behind: %v, %v, %d handles", entries, err, m.Handles())
			}
			if err := vfs.WriteFileAtomic(m, "/f", []byte("new")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestReadFileLimit(t *testing.T) {
	m := vfstest.NewMem()
	if err := vfs.WriteFileAtomic(m, "/f", []byte("12345")); err != nil {
		t.Fatal(err)
	}
	if got, err := vfs.ReadFile(m, "/f", 5); err != nil || string(got) != "12345" {
		t.Errorf("at the limit: %q, %v", got, err)
	}
	if _, err := vfs.ReadFile(m, "/f", 4); !errors.Is(err, vfs.ErrTooLarge) {
		t.Errorf("over the limit: error %v", err)
	}
	if _, err := vfs.ReadFile(m, "/none", 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: error %v", err)
	}
	if m.Handles() != 0 {
		t.Errorf("%d handles stay open", m.Handles())
	}
}
