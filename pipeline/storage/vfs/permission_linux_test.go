package vfs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// nobody is a user without privileges.
const nobody = 65534

// unprivileged calls f as a user who is bound by permissions and owns dir. For the superuser that is nobody: on Linux the user who counts for
// files belongs to the thread.
func unprivileged(t *testing.T, dir string, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	for _, name := range []string{filepath.Dir(dir), dir} { // what t.TempDir made may be entered by its owner only
		if err := os.Chown(name, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine, and no other gets this user
		if err := syscall.Setfsuid(nobody); err != nil {
			t.Error(err)
			return
		}
		f()
	}()
	<-done
}

// TestMkdirAllBelowAnUnreadableDirectory: a directory that exists is fine even if its parent may not be read; a missing one there is not.
func TestMkdirAllBelowAnUnreadableDirectory(t *testing.T) {
	dir := t.TempDir()
	parent := filepath.Join(dir, "parent")
	unprivileged(t, dir, func() {
		if err := os.MkdirAll(parent+"/dir", 0o700); err != nil {
			t.Error(err)
			return
		}
		if err := os.Chmod(parent, 0o100); err != nil {
			t.Error(err)
			return
		}
		defer os.Chmod(parent, 0o700) // so that the folder can be deleted
		if err := vfs.OS().MkdirAll(parent + "/dir"); err != nil {
			t.Errorf("existing directory: %v", err)
		}
		if err := vfs.OS().MkdirAll(parent + "/other"); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("missing directory: error %v", err)
		}
	})
}
