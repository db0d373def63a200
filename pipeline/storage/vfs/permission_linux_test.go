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

// otherUser is the id of a user without privileges.
const otherUser = 65534

// unprivileged calls f as a user who is subject to permissions and owns dir. For the superuser that
// is otherUser: on Linux, the user for file access belongs to the thread.
func unprivileged(t *testing.T, dir string, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	for _, name := range []string{filepath.Dir(dir), dir} { // only the owner may enter what t.TempDir created
		if err := os.Chown(name, otherUser, otherUser); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine, and no other gets this user
		if err := syscall.Setfsuid(otherUser); err != nil {
			t.Error(err)
			return
		}
		f()
	}()
	<-done
}

// TestMkdirAllBelowAnUnreadableDirectory: an existing directory is accepted even if its parent is
// not readable; a missing one is an error.
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
