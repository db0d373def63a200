package vfs

import (
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
)

// checksumLine is the last line of a checked file: the CRC-32C (Castagnoli) of everything before.
const checksumLine = "crc32c %08x\n"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrChecksum is wrapped by ReadChecked when the content differs from what was written, or is too
// large.
var ErrChecksum = errors.New("checksum mismatch")

// AppendChecksum appends a line with the checksum of text.
func AppendChecksum(text []byte) []byte {
	return fmt.Appendf(text, checksumLine, crc32.Checksum(text, castagnoli))
}

// WriteChecked is like WriteFileAtomic for lines of text. It appends a line with their checksum.
func WriteChecked(fsys FS, name string, text []byte) error {
	return WriteFileAtomic(fsys, name, AppendChecksum(text))
}

// ReadChecked returns what WriteChecked wrote, at most limit bytes with the checksum.
func ReadChecked(fsys FS, name string, limit int64) ([]byte, error) {
	b, err := ReadFile(fsys, name, limit)
	if errors.Is(err, ErrTooLarge) {
		return nil, fmt.Errorf("%w: %w", ErrChecksum, err)
	}
	if err != nil {
		return nil, err
	}
	text := string(b)
	end := strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n') + 1
	if string(AppendChecksum(b[:end:end])) != text {
		return nil, fmt.Errorf("read %s: %w", name, ErrChecksum)
	}
	return b[:end], nil
}
