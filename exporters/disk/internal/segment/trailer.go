package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// maxTrailing is the maximum number of bytes after a segment with which its trailer can still be
// found.
const maxTrailing = 64 << 20

// searchStep is the number of bytes that are searched in one step.
const searchStep = 1 << 20

// findTrailer reads the trailer at the end of the file. If there is none, it searches before the
// end: an unclean shutdown of the file system, or a failed copy, may have appended data. It sets
// size to the end of the segment.
func (s *Segment) findTrailer() (trailer, error) {
	t, err := s.trailerAt(s.size)
	if err == nil || errors.Is(err, ErrNewer) || errors.Is(err, errUnread) {
		return t, err
	}
	buf := make([]byte, searchStep+len(magic)-1)
	for to := s.size; to > max(headerSize, s.size-maxTrailing); to -= searchStep {
		from := max(to-searchStep, headerSize)
		b := buf[:min(to+int64(len(magic))-1, s.size)-from]
		if s.readAt(b, from) != nil {
			return t, err // report the trailer, not the search
		}
		for at := bytes.LastIndex(b, []byte(magic)); at >= 0; at = bytes.LastIndex(b[:at+len(magic)-1], []byte(magic)) {
			end := from + int64(at+len(magic))
			found, wrong := s.trailerAt(end)
			if wrong == nil {
				_, wrong = s.readDirectory(found)
			}
			if wrong == nil || errors.Is(wrong, ErrNewer) {
				s.size, s.rest = end, s.size-end
				return found, wrong
			}
		}
	}
	return t, err
}

// errUnread marks disk errors, which say nothing about the content of the file.
var errUnread = errors.New("cannot read trailer")

// trailerAt reads the trailer of a segment that ends at the given offset.
func (s *Segment) trailerAt(end int64) (trailer, error) {
	if end < headerSize+trailerSize {
		return trailer{}, errTruncated
	}
	var b [trailerSize]byte
	if err := s.readAt(b[:], end-trailerSize); err != nil {
		return trailer{}, fmt.Errorf("%w: %w", errUnread, err)
	}
	return readTrailer(b[:], end)
}

// Trailing returns the number of bytes after the trailer, which do not belong to the segment.
func (s *Segment) Trailing() int64 { return s.rest }

// Trim removes the trailing data from the file.
func (s *Segment) Trim(fsys vfs.FS) error {
	f, err := fsys.OpenWrite(s.name)
	if err != nil {
		return fmt.Errorf("removing data after a segment: %w", err)
	}
	if err = f.Truncate(s.size); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("removing data after a segment: %w", err)
	}
	s.rest = 0
	return nil
}

// restoreStep is the number of bytes that Restore copies before it checks its context.
const restoreStep = 1 << 20

// Restore rewrites a file whose name was deleted, from the open file. It stops when ctx ends.
func (s *Segment) Restore(ctx context.Context, fsys vfs.FS) error {
	_, err := create(fsys, s.name, func(f vfs.File) (Info, error) {
		to, from := io.NewOffsetWriter(f, 0), io.NewSectionReader(s.file, 0, s.size)
		for at := int64(0); at < s.size; at += restoreStep {
			if err := ctx.Err(); err != nil {
				return Info{}, err
			}
			if _, err := io.CopyN(to, from, min(restoreStep, s.size-at)); err != nil {
				return Info{}, err
			}
		}
		return s.info, nil
	})
	if err != nil {
		return fmt.Errorf("rewriting segment %s: %w", s.name, err)
	}
	return nil
}
