package wal

import (
	"bytes"
	"hash/crc32"
	"math/bits"
)

// An interrupted write leaves whole sectors of groupUnit bytes as they were before: zeros, or stale
// bytes in a reused file. A record that is unreadable for another reason may have been synced, even
// if no later record says so.

// maxFlips is the maximum number of bits, of the 160 bits known in advance, in which a header may
// differ from the expected one to count as a damaged header.
const maxFlips = 8

// findDamagedTail looks for the damaged header of a record after the last one. Without it, that
// record would look as if it had never been written.
func (s *scanner) findDamagedTail() {
	for _, at := range []int64{s.last, roundUp(s.last, groupUnit)} {
		b := s.window(at, headerSize)
		if len(b) < headerSize {
			continue
		}
		if _, sound := parseHeader(b); sound {
			continue // stale, or counted already
		}
		written := at%groupUnit != 0 && s.seen == s.prev // the sector has the end of a sound record
		if s.isDamagedHeader(b) || written && !isZero(b[:min(headerSize, roundUp(at, groupUnit)-at)]) {
			s.seen++
			s.last = at + headerSize
			if (at+headerSize-1)/groupUnit == at/groupUnit && at+groupUnit <= s.size {
				s.doubted = s.seen
			}
			return
		}
	}
}

// isDamagedHeader reports whether b is the header that follows the last one, apart from some bits
// or from its second half.
func (s *scanner) isDamagedHeader(b []byte) bool {
	var want [headerSize]byte
	header{version: formatVersion, epoch: s.epoch, seq: s.seen + 1}.put(want[:])
	flips := 0
	for i := range 24 {
		if i < 4 || i >= 8 { // the length is not known
			flips += bits.OnesCount8(b[i] ^ want[i])
		}
	}
	return flips <= maxFlips || bytes.Equal(b[:4], want[:4]) && bytes.Equal(b[8:16], want[8:16])
}

// judge marks the record at an offset, whose payload is unreadable, as doubtful unless an
// interrupted write can be the reason.
func (s *scanner) judge(at int64, h header, payload []byte) {
	flipped := !s.fresh && isFlipped(payload, h)
	if flipped || !s.isTorn(at, at+int64(recordSize(int(h.length)))) {
		s.doubted = max(s.doubted, h.seq)
	}
}

// maxFlipped is the maximum length in bytes of a payload that is searched for a wrong bit. Stale
// bytes look like one wrong bit with a probability of 8 * maxFlipped / 2^32, one in 8192.
const maxFlipped = 64 << 10

// isFlipped reports whether flipping one bit of the payload would make the checksum right.
func isFlipped(payload []byte, h header) bool {
	if len(payload) != int(h.length) || len(payload) > maxFlipped {
		return false
	}
	// CRCs are linear: a wrong bit changes the checksum by an amount that depends on its place.
	wrong := crc32.Checksum(payload, castagnoli) ^ h.payloadCRC
	var change [8]uint32 // by each bit of a byte
	for bit := range change {
		change[bit] = castagnoli[1<<bit]
	}
	for range payload { // from the last byte to the first
		for bit, c := range change {
			if c == wrong {
				return true
			}
			change[bit] = castagnoli[byte(c)] ^ c>>8
		}
	}
	return false
}

// minCut is the number of zeros at the end of a sector from which the sector counts as damaged if
// the next sector is zero. Payloads have runs of zeros too, but shorter ones.
const minCut = 64

// isTorn reports whether sectors of a record whose header is sound may not have been written.
func (s *scanner) isTorn(start, end int64) bool {
	at := (start + headerSize - 1) / groupUnit * groupUnit // the sector with the end of the header
	switch {
	case end > s.size:
		return true
	case at+groupUnit >= end:
		return false
	case !s.fresh:
		return true
	}
	torn, cut := false, false
	for ; at < end; at += groupUnit {
		b := s.window(at, int(min(groupUnit, end-at)))
		if isZero(b) {
			if cut {
				return false
			}
			torn = true
		}
		cut = len(b) >= minCut && !isZero(b) && isZero(b[len(b)-minCut:])
	}
	return torn
}

func isZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }
