package wal

import (
	"encoding/binary"
	"hash/crc32"
)

const (
	headerSize = 40
	recordUnit = 8   // records start at multiples of it
	groupUnit  = 512 // groups start at multiples of it: the minimum sector size of a disk

	formatVersion = 1
	magic         = uint32('W') | uint32('A')<<8 | uint32('L')<<16
	magicMask     = 1<<24 - 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header precedes every payload; see the package comment.
type header struct {
	version    byte
	length     uint32 // of the payload
	epoch      uint64
	seq        uint64
	durable    uint64
	payloadCRC uint32
}

// recordSize is the length of a record in the file.
func recordSize(payload int) int { return roundUp(headerSize+payload, recordUnit) }

func roundUp[T int | int64](n, unit T) T { return (n + unit - 1) / unit * unit }

func (h header) put(b []byte) {
	_ = b[headerSize-1]
	binary.LittleEndian.PutUint32(b, magic|uint32(h.version)<<24)
	binary.LittleEndian.PutUint32(b[4:], h.length)
	binary.LittleEndian.PutUint64(b[8:], h.epoch)
	binary.LittleEndian.PutUint64(b[16:], h.seq)
	binary.LittleEndian.PutUint64(b[24:], h.durable)
	binary.LittleEndian.PutUint32(b[32:], h.payloadCRC)
	binary.LittleEndian.PutUint32(b[36:], crc32.Checksum(b[:36], castagnoli))
}

// parseHeader returns false if b, of headerSize bytes, is not a valid header of any version.
func parseHeader(b []byte) (header, bool) {
	_ = b[headerSize-1]
	first := binary.LittleEndian.Uint32(b)
	if first&magicMask != magic || crc32.Checksum(b[:36], castagnoli) != binary.LittleEndian.Uint32(b[36:]) {
		return header{}, false
	}
	return header{
		version:    byte(first >> 24),
		length:     binary.LittleEndian.Uint32(b[4:]),
		epoch:      binary.LittleEndian.Uint64(b[8:]),
		seq:        binary.LittleEndian.Uint64(b[16:]),
		durable:    binary.LittleEndian.Uint64(b[24:]),
		payloadCRC: binary.LittleEndian.Uint32(b[32:]),
	}, true
}

// plausible reports whether this package could have written the header. It bounds what recovery
// allocates and trusts.
func (h header) plausible() bool {
	return h.length <= MaxPayload && h.seq > h.durable && h.seq < 1<<63
}

// appendRecord appends a record to b. The payload is the concatenation of parts; h.length must be
// its length.
func appendRecord(b []byte, h header, parts [][]byte) []byte {
	start := len(b)
	b = append(b, make([]byte, headerSize)...)
	for _, p := range parts {
		h.payloadCRC = crc32.Update(h.payloadCRC, castagnoli, p)
		b = append(b, p...)
	}
	h.version = formatVersion
	h.put(b[start:])
	return appendZeros(b, recordSize(int(h.length))-(len(b)-start))
}

// appendZeros appends fewer than groupUnit zeros.
func appendZeros(b []byte, n int) []byte {
	var zeros [groupUnit]byte
	return append(b, zeros[:n]...)
}
