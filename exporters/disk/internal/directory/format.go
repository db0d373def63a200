package directory

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// The file FORMAT has two lines: the version of the layout, and the checksum of the first line. All
// versions begin this way.
const (
	formatFile = "FORMAT"
	formatLine = "tracing span store, version %d\n"
	// maxFormatFile is the maximum size of the file in bytes.
	maxFormatFile = 1 << 10
)

var errFormat = errors.New("checksum mismatch, or not the version of a span store")

func encodeFormat(version int) []byte {
	return vfs.AppendChecksum(fmt.Appendf(nil, formatLine, version))
}

// decodeFormat returns the version.
func decodeFormat(b []byte) (version int, err error) {
	if _, err := fmt.Sscanf(string(b), formatLine, &version); err != nil || version < 1 {
		return 0, errFormat
	}
	want := encodeFormat(version)
	if !bytes.HasPrefix(b, want) || version <= Version && len(b) > len(want) {
		return 0, errFormat
	}
	return version, nil
}

// readFormat checks the version of the store. If the file cannot be decoded, it returns damage: all
// other files have versions of their own, so that the store can be read without it. The error
// matches fs.ErrNotExist if the file is missing.
func (d *Dir) readFormat() (damage, err error) {
	content, err := vfs.ReadFile(d.fs, d.in(formatFile), maxFormatFile)
	if errors.Is(err, vfs.ErrTooLarge) {
		return err, d.checkFolders(err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the span store version: %w", err)
	}
	v, damage := decodeFormat(content)
	if damage != nil {
		return damage, d.checkFolders(damage)
	}
	if v > Version {
		return nil, fmt.Errorf("span store %s has format %d, newer than format %d of this program; "+
			"use the program that wrote it, or configure another data_dir", d.path, v, Version)
	}
	return nil, nil
}

// checkFolders fails if the folder contains nothing else of a store: the damaged file FORMAT then
// belongs to something else.
func (d *Dir) checkFolders(damage error) error {
	entries, err := d.fs.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("listing the files of the span store: %w", err)
	}
	if slices.ContainsFunc(entries, func(e vfs.Entry) bool { return e.IsDir && (e.Name == segmentDir || e.Name == logDir) }) {
		return nil
	}
	return fmt.Errorf("%s does not contain a span store version (%w); check that %s is the right folder", d.in(formatFile), damage, d.path)
}

// checkFormat is called when the store is opened for writing. It creates the file if it is missing,
// and sets aside a damaged one.
func (d *Dir) checkFormat() error {
	damage, err := d.readFormat()
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case damage != nil:
		if err := d.setFormatAside(damage); err != nil {
			return err
		}
	default:
		return nil
	}
	return vfs.WriteFileAtomic(d.fs, d.in(formatFile), encodeFormat(Version))
}

func (d *Dir) setFormatAside(damage error) error {
	if err := d.fs.MkdirAll(d.QuarantineDir()); err != nil {
		return fmt.Errorf("creating the span store folders: %w", err)
	}
	to, err := d.Quarantine(d.in(formatFile))
	if err != nil {
		return err
	}
	d.formatDamage = &FormatDamage{File: to, Err: damage}
	return nil
}

// FormatDamage describes a damaged file FORMAT.
type FormatDamage struct {
	// File is the path of the damaged file: in the quarantine, unless the folder was opened
	// read-only.
	File string
	// Err says what is wrong with it.
	Err error
}

// FormatDamage returns what was wrong with the file FORMAT when the folder was opened, or nil. Such
// a file is replaced; no spans are lost.
func (d *Dir) FormatDamage() *FormatDamage { return d.formatDamage }
