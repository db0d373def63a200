//go:build unix

package config_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/internal/config"
)

// What is not a regular file, or is too large, is refused without waiting.
func TestFilesThatNeverEnd(t *testing.T) {
	dir := t.TempDir()
	pipe, large := filepath.Join(dir, "pipe"), filepath.Join(dir, "large")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 1<<40); err != nil {
		t.Fatal(err)
	}
	including := filepath.Join(dir, "including.yaml")
	for name, want := range map[string]string{
		pipe: "is not a regular file", "/dev/zero": "is not a regular file", large: "is larger than 16MiB", dir: "is a folder, not a file",
	} {
		if err := os.WriteFile(including, []byte("service: {data_dir: \"${file:"+name+"}\"}"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{name, including} {
			if _, err := config.Load(config.Options{Files: []string{file}}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s in %s: %v, want %q", name, file, err, want)
			}
		}
	}
}

// Reading a pipe that is never closed ends with the context, so that a signal ends the process.
func TestReadingEndsWithContext(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := config.ReadFile(ctx)(fmt.Sprint("/dev/fd/", r.Fd())); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}
