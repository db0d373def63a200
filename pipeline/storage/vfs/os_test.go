package vfs_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

func TestLockDiesWithItsProcess(t *testing.T) {
	name := filepath.ToSlash(filepath.Join(t.TempDir(), "lock"))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), lockEnv+"="+name)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 100)
	n, _ := out.Read(said)
	if string(said[:n]) != "locked" {
		t.Errorf("the other process says %q", said[:n])
	}
	if _, err := vfs.OS().Lock(name); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("lock held by another process: error %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var killed *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &killed) {
		t.Fatalf("the other process ended by itself: %v", err)
	}
	lock, err := vfs.OS().Lock(name)
	if err != nil {
		t.Fatalf("after the death of the holder: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
}

func TestNoSpace(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.ENOSPC: true,
		&fs.PathError{Op: "write", Path: "f", Err: syscall.ENOSPC}: true,
		errors.Join(errors.New("flush"), syscall.ENOSPC):           true,
		syscall.EIO:    false,
		fs.ErrNotExist: false,
		nil:            false,
	} {
		if got := vfs.NoSpace(err); got != want {
			t.Errorf("NoSpace(%v) = %v", err, got)
		}
	}
}

func BenchmarkSync(b *testing.B) {
	f, err := vfs.OS().Create(filepath.Join(b.TempDir(), "f"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, 1<<20), 0); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.WriteAt([]byte("record"), 0); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}
