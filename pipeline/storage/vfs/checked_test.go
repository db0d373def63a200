package vfs_test

import (
	"errors"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// TestChecked: text is read as it was written, and other content is an error.
func TestChecked(t *testing.T) {
	fs := vfstest.NewMem()
	for _, text := range []string{"", "a\n", "a line\nanother line\n"} {
		if err := vfs.WriteChecked(fs, "/f", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := vfs.ReadChecked(fs, "/f", 100); err != nil || string(got) != text {
			t.Errorf("%q, %v; want %q", got, err, text)
		}
	}
	for _, content := range []string{"", "\n", "a\n", "crc32c 00000001\n", "crc32c 00000000", "crc32c 00000000\n\n", "a\ncrc32c 00000000\n"} {
		if err := vfs.WriteFileAtomic(fs, "/f", []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := vfs.ReadChecked(fs, "/f", 100); !errors.Is(err, vfs.ErrChecksum) {
			t.Errorf("content %q: %q, %v; want a wrong checksum", content, got, err)
		}
	}
	if _, err := vfs.ReadChecked(fs, "/f", 10); !errors.Is(err, vfs.ErrTooLarge) {
		t.Errorf("%v, want too large", err)
	}
}
