package mark

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Mark is a deletion.
type Mark struct {
	// Number tells marks apart and orders them; the first one is 1.
	Number uint64
	// Through is the last log epoch whose spans it covers.
	Through uint64
	// Made is when it was asked for.
	Made time.Time
	// Tenant is whose spans it covers.
	Tenant string
	// Traces are the traces that it covers, whenever they started. Without any it covers the spans of Service, or of all services if that is
	// "", whose starts are within From and To, both inclusive, in nanoseconds since the Unix epoch.
	Traces   []otlpdata.TraceID
	Service  string
	From, To uint64
}

// Applies reports whether spans that the mark covers may be in a file that begins with a log epoch and for which the marks up to a number
// were heeded.
func (m *Mark) Applies(firstEpoch, heeded uint64) bool {
	return m.Number > heeded && firstEpoch <= m.Through
}

const (
	magic   = "TDEL"
	version = 1
	fixed   = len(magic) + 4 + 5*8
	idSize  = len(otlpdata.TraceID{})
)

// Bounds of what a mark may hold.
const (
	maxTenant = 64 << 10
	maxText   = 1 << 20
	// MaxTraces is the greatest number of traces in a mark.
	MaxTraces = 1 << 16
	maxSize   = int64(fixed + 3*4 + maxTenant + maxText + MaxTraces*idSize + 4)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrNewer is matched by the error for a mark of a later format.
var ErrNewer = errors.New("the deletion was written by a newer program")

var errDamaged = errors.New("the deletion is damaged")

// Append appends the content of the mark's file.
func (m *Mark) Append(dst []byte) ([]byte, error) {
	if len(m.Tenant) > maxTenant || len(m.Service) > maxText || len(m.Traces) > MaxTraces {
		return dst, errors.New("the deletion is too large")
	}
	from := len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, version)
	for _, v := range []uint64{m.Number, m.Through, uint64(m.Made.UnixNano()), m.From, m.To} {
		dst = binary.LittleEndian.AppendUint64(dst, v)
	}
	for _, s := range []string{m.Tenant, m.Service} {
		dst = append(binary.LittleEndian.AppendUint32(dst, uint32(len(s))), s...)
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(m.Traces)))
	for i := range m.Traces {
		dst = append(dst, m.Traces[i][:]...)
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[from:], castagnoli)), nil
}

// Decode reads the content of a mark's file. An error of a later format matches [ErrNewer].
func Decode(b []byte) (*Mark, error) {
	if len(b) < fixed+4 || string(b[:len(magic)]) != magic {
		return nil, errDamaged
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if v := binary.LittleEndian.Uint32(b[len(magic):]); v > version {
		return nil, fmt.Errorf("%w: it has version %d, and this program reads up to version %d", ErrNewer, v, version)
	}
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, errDamaged
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[len(magic)+4+8*i:]) }
	m := &Mark{Number: word(0), Through: word(1), Made: time.Unix(0, int64(word(2))).UTC(), From: word(3), To: word(4)}
	r := reader{b: body[fixed:]}
	m.Tenant, m.Service = string(r.take(r.length())), string(r.take(r.length()))
	n := r.length()
	ids := r.take(n * idSize)
	if r.bad || len(r.b) > 0 || m.Number == 0 || len(m.Tenant) > maxTenant || len(m.Service) > maxText || n > MaxTraces {
		return nil, errDamaged
	}
	for ; len(ids) > 0; ids = ids[idSize:] {
		m.Traces = append(m.Traces, otlpdata.TraceID(ids))
	}
	return m, nil
}

// reader takes parts of a file. After one that is not there it returns nothing.
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
