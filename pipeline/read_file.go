package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// ErrFileTooLarge is the error of ReadFile for a file that is larger than the limit.
var ErrFileTooLarge = errors.New("file is too large")

// ReadFile returns the content of a file of at most limit bytes. It refuses files that are not
// regular, such as named pipes and devices, because reading them might never end. Only files that
// the process inherited, such as /dev/stdin and /dev/fd/63, may be pipes; reading them ends with
// ctx.
func ReadFile(ctx context.Context, name string, limit ByteSize) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a named pipe does not wait for its writer
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	if err := checkRegular(f, name); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { f.Close() })() //nolint:errcheck // ends Read
	b, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("reading %s: %w", name, ctx.Err())
	case err != nil:
		return nil, err
	case int64(len(b)) > int64(limit):
		return nil, fmt.Errorf("%w: %s is larger than %s", ErrFileTooLarge, name, limit)
	}
	return b, nil
}

// CheckReadable returns an error if ReadFile would refuse a file.
func CheckReadable(name string) error {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	return errors.Join(checkRegular(f, name), f.Close())
}

func checkRegular(f *os.File, name string) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder, not a file", name)
	case info.Mode().IsRegular() || isInherited(name):
		return nil
	}
	return fmt.Errorf("%s is not a regular file; copy its content to one", name)
}

// isInherited reports whether the process inherited the file when it was started.
func isInherited(name string) bool {
	return name == "/dev/stdin" || strings.HasPrefix(name, "/dev/fd/") || strings.HasPrefix(name, "/proc/self/fd/")
}
