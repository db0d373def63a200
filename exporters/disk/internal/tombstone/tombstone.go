package tombstone

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Tombstone is a recorded deletion.
type Tombstone struct {
	// Number identifies and orders tombstones; the first one is 1.
	Number uint64
	// Through is the last log epoch whose spans are deleted.
	Through uint64
	// Made is the time of the deletion request.
	Made time.Time
	// Tenant is the tenant whose spans are deleted.
	Tenant string
	// Traces lists the deleted traces, regardless of their start time. If it is empty, the spans of
	// Service, or of all services if Service is "", are deleted if they started between From and
	// To, both inclusive, in nanoseconds since the Unix epoch.
	Traces   []otlpdata.TraceID
	Service  string
	From, To uint64
}

// Applies reports whether a file may hold spans that the tombstone deletes. firstEpoch is the first
// log epoch of the file, and lastApplied the number of the last tombstone that was applied when the
// file was written.
func (t *Tombstone) Applies(firstEpoch, lastApplied uint64) bool {
	return t.Number > lastApplied && firstEpoch <= t.Through
}

const (
	magic   = "TDEL"
	version = 1
	fixed   = len(magic) + 4 + 5*8
	idSize  = len(otlpdata.TraceID{})
)

const (
	maxTenant  = 64 << 10 // bytes
	maxService = 1 << 20  // bytes
	// MaxTraces is the maximum number of traces in a tombstone.
	MaxTraces   = 1 << 16
	maxFileSize = int64(fixed + 3*4 + maxTenant + maxService + MaxTraces*idSize + 4)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrNewer matches the error for a tombstone of a later format version.
var ErrNewer = errors.New("deletion file was written in a newer format; upgrade this program to read it")

var errDamaged = errors.New("deletion file is damaged")

// Append appends the encoded content of the tombstone's file to dst.
func (t *Tombstone) Append(dst []byte) ([]byte, error) {
	if len(t.Tenant) > maxTenant || len(t.Service) > maxService || len(t.Traces) > MaxTraces {
		return dst, errors.New("deletion names too many traces, or its tenant or service is too long")
	}
	from := len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, version)
	for _, v := range []uint64{t.Number, t.Through, uint64(t.Made.UnixNano()), t.From, t.To} {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	for _, s := range []string{t.Tenant, t.Service} {
		dst = append(binary.LittleEndian.AppendUint32(dst, uint32(len(s))), s...)
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(t.Traces)))
	for i := range t.Traces {
		dst = append(dst, t.Traces[i][:]...)
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[from:], castagnoli)), nil
}

// Decode decodes the content of a tombstone's file. The error for a later format version matches
// [ErrNewer]. All versions have the same magic, place of the version, and checksum at the end.
func Decode(b []byte) (*Tombstone, error) {
	if len(b) < fixed+4 || string(b[:len(magic)]) != magic {
		return nil, errDamaged
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, errDamaged
	}
	if v := binary.LittleEndian.Uint32(b[len(magic):]); v > version {
		return nil, fmt.Errorf("%w (format version %d, supported up to %d)", ErrNewer, v, version)
	}
	field := func(i int) uint64 { return binary.LittleEndian.Uint64(b[len(magic)+4+8*i:]) }
	t := &Tombstone{Number: field(0), Through: field(1), Made: time.Unix(0, int64(field(2))).UTC(), From: field(3), To: field(4)}
	r := reader{b: body[fixed:]}
	t.Tenant, t.Service = string(r.take(r.length())), string(r.take(r.length()))
	n := r.length()
	ids := r.take(n * idSize)
	if r.bad || len(r.b) > 0 || t.Number == 0 || len(t.Tenant) > maxTenant || len(t.Service) > maxService || n > MaxTraces {
		return nil, errDamaged
	}
	for ; len(ids) > 0; ids = ids[idSize:] {
		t.Traces = append(t.Traces, otlpdata.TraceID(ids))
	}
	return t, nil
}

// reader splits a file into its parts. After a part that exceeds the file, bad is set and all parts
// are empty.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.b, r.bad = nil, true
		return nil
	}
	part := r.b[:n]
	r.b = r.b[n:]
	return part
}

func (r *reader) length() int {
	b := r.take(4)
	if b == nil {
		return 0
	}
	return int(binary.LittleEndian.Uint32(b))
}
