package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

const (
	chunk     = 256 << 10      // bytes per read
	sector    = 4096           // bytes skipped when the disk cannot read them
	endOfFile = math.MaxUint64 // above any sequence number
)

// record is a valid record; the payload is valid until the scanner moves on.
type record struct {
	seq     uint64
	payload []byte
}

// scanner reads the valid records of one part file by ascending sequence number and ignores
// everything else in the file. Its memory is one chunk or one record, whichever is larger.
type scanner struct {
	file  vfs.File
	epoch uint64
	size  int64 // of the file
	end   int64 // where reading ends: before size if too much is unreadable
	fresh bool  // the file was zeros before records were written to it

	buf  []byte // file bytes from base on
	base int64
	off  int64 // next byte to examine

	prev    uint64 // sequence number of the last record returned
	first   uint64 // of the first one; 0 if there was none yet
	last    int64  // end of the last record with a sound header, also if the file ends before it
	seen    uint64 // highest in any sound header
	durable uint64 // highest claim in any sound header
	doubted uint64 // highest number of a record that is unreadable, but not because its write was interrupted

	damage     []Damage
	unreadable []badSector // rising offsets, at most maxUnreadable
}

type badSector struct {
	off int64
	err error
}

func newScanner(file vfs.File, epoch uint64) (*scanner, error) {
	size, err := file.Size()
	return &scanner{file: file, epoch: epoch, size: size, end: size}, err
}

// grew reports whether the file became longer since it was opened: its log is being written.
func (s *scanner) grew() bool {
	size, err := s.file.Size()
	return err == nil && size > s.size
}

// next returns false at the end of the file. The only error is ErrVersion; all other problems are
// recorded in s.damage.
func (s *scanner) next() (record, bool, error) {
	start := s.off
	for {
		h, found, err := s.seek()
		if err != nil || !found {
			s.findDamagedTail()
			s.note(start, s.size, endOfFile)
			return record{}, false, err
		}
		at := s.off
		s.off += int64(recordSize(int(h.length)))
		s.last = s.off
		s.seen, s.durable = max(s.seen, h.seq), max(s.durable, h.durable)
		payload := s.window(at+headerSize, int(h.length))
		if len(payload) != int(h.length) || crc32.Checksum(payload, castagnoli) != h.payloadCRC {
			s.judge(at, h, payload)
			continue
		}
		if h.seq <= s.prev {
			continue // no writer produces this; keep the order
		}
		s.note(start, at, h.seq)
		s.prev = h.seq
		if s.first == 0 {
			s.first = h.seq
		}
		return record{seq: h.seq, payload: payload}, true, nil
	}
}

// seek advances to the next valid header of the epoch.
func (s *scanner) seek() (header, bool, error) {
	for ; s.skipToMagic(); s.off += recordUnit {
		h, ok := parseHeader(s.window(s.off, headerSize))
		if !ok || h.epoch != s.epoch {
			continue
		}
		if h.version != formatVersion {
			return header{}, false, fmt.Errorf("%w: %s has version %d", ErrVersion, s.file.Name(), h.version)
		}
		if h.plausible() {
			return h, true, nil
		}
	}
	return header{}, false, nil
}

// skipToMagic advances to the next possible start of a header, and returns false if there is none.
func (s *scanner) skipToMagic() bool {
	for len(s.window(s.off, headerSize)) == headerSize {
		w := s.buf[s.off-s.base:]
		for i := 0; i+headerSize <= len(w); i += recordUnit {
			if binary.LittleEndian.Uint32(w[i:])&magicMask == magic {
				s.off += int64(i)
				return true
			}
		}
		s.off += int64((len(w)-headerSize)/recordUnit+1) * recordUnit
	}
	return false
}

// window returns n bytes of the file at off, fewer at its end.
func (s *scanner) window(off int64, n int) []byte {
	if s.buffered(off, n) < n {
		s.read(off, n)
		n = s.buffered(off, n)
	}
	if n == 0 {
		return nil
	}
	return s.buf[off-s.base:][:n]
}

// buffered returns how many of the n bytes at off are in the buffer.
func (s *scanner) buffered(off int64, n int) int {
	if off < s.base {
		return 0
	}
	return int(max(0, min(int64(n), s.base+int64(len(s.buf))-off)))
}

// read fills the buffer from off on, with at least n bytes unless the file ends before. Unreadable
// sectors are read as zeros.
func (s *scanner) read(off int64, n int) {
	want := int(max(0, min(int64(max(n, chunk)), s.end-off)))
	if cap(s.buf) < want {
		s.buf = make([]byte, want)
	}
	s.buf, s.base = s.buf[:want], off
	got, err := s.file.ReadAt(s.buf, off)
	switch {
	case got == want:
	case errors.Is(err, io.EOF):
		s.buf, s.end = s.buf[:got], off+int64(got)
	default:
		s.readSectors()
	}
}

// readSectors fills the buffer sector by sector, because one bad sector fails the whole read.
func (s *scanner) readSectors() {
	for i := 0; i < len(s.buf); {
		at := s.base + int64(i)
		piece := s.buf[i:min(i+sector-int(at%sector), len(s.buf))]
		if n, err := s.file.ReadAt(piece, at); n < len(piece) {
			clear(piece)
			s.noteUnreadable(at, err)
		}
		if len(s.unreadable) >= maxUnreadable {
			s.buf, s.end = s.buf[:i], at
			return
		}
		i += len(piece)
	}
}

func (s *scanner) noteUnreadable(at int64, err error) {
	if n := len(s.unreadable); n > 0 && s.unreadable[n-1].off >= at/sector*sector {
		return // recorded when the buffer was filled before
	}
	s.unreadable = append(s.unreadable, badSector{off: at, err: err})
}

// note records the range of the file before the record with number seq, or before the end of the
// file, if records may have been there.
func (s *scanner) note(from, to int64, seq uint64) {
	dmg := Damage{File: s.file.Name(), Offset: from, Bytes: to - from, First: s.prev + 1, Last: seq - 1}
	for _, b := range s.unreadable {
		if b.off >= from && b.off < to {
			dmg.Err = b.err
		}
	}
	if (dmg.First <= dmg.Last || dmg.Err != nil) && dmg.Bytes > 0 && len(s.damage) < maxDamage {
		s.damage = append(s.damage, dmg)
	}
}
