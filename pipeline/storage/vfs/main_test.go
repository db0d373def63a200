package vfs_test

import (
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// lockEnv asks the test binary to take the lock of this name and to keep it until it dies.
const lockEnv = "VFS_TEST_LOCK"

func TestMain(m *testing.M) {
	if name := os.Getenv(lockEnv); name != "" {
		holdLock(name)
	}
	goleak.VerifyTestMain(m)
}

func holdLock(name string) {
	if _, err := vfs.OS().Lock(name); err != nil {
		os.Stdout.WriteString(err.Error())
		os.Exit(1)
	}
	os.Stdout.WriteString("locked")
	io.Copy(io.Discard, os.Stdin) // the parent kills this process, or dies and closes the pipe
	os.Exit(0)
}
