package delivery

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Format of a batch in a queue on disk; numbers after the version are varints:
//
//	version (one byte): 1 for spans, 2 for log records,
//	time of arrival (ns since the Unix epoch), number of chunks,
//	lengths of: tenant, format, transport, each chunk; then these values in the same order
//
// The record that contains the payload has a checksum.
const payloadVersion = 1 // plus the number of the signal

// noLimits accepts everything: queued batches were checked against the limits of their receiver.
var noLimits = otlpdata.Limits{Bytes: math.MaxInt, Spans: math.MaxInt, Depth: math.MaxInt, Items: math.MaxInt}

var errPayload = errors.New("not a batch in the queue format of this version")

// encodeBatch returns the payload of a batch in parts. The chunks of the batch are not copied.
func encodeBatch(b *otlpdata.Batch) ([][]byte, error) {
	all, err := b.Chunks()
	if err != nil {
		return nil, err
	}
	chunks := slices.Collect(all)
	m := b.Meta()
	head := binary.AppendVarint([]byte{payloadVersion + byte(m.Signal)}, m.Received.UnixNano())
	head = binary.AppendUvarint(head, uint64(len(chunks)))
	texts := []string{m.Tenant, m.Format, m.Transport}
	for _, s := range texts {
		head = binary.AppendUvarint(head, uint64(len(s)))
	}
	for _, s := range chunks {
		head = binary.AppendUvarint(head, uint64(len(s)))
	}
	for _, s := range texts {
		head = append(head, s...)
	}
	return append([][]byte{head}, chunks...), nil
}

// decodeBatch decodes a payload. The batch shares the bytes of the payload. It returns an error for
// invalid payloads.
func decodeBatch(payload []byte) (*otlpdata.Batch, error) {
	r := payloadReader{rest: payload}
	signal := otlpdata.Signal(r.byte() - payloadVersion)
	if r.failed || signal > otlpdata.SignalLogs {
		return nil, errPayload
	}
	received := r.varint()
	n := r.count()
	lengths := make([]int, 3+n)
	for i := range lengths {
		lengths[i] = r.count()
	}
	m := otlpdata.Meta{Signal: signal, Tenant: string(r.take(lengths[0])), Format: string(r.take(lengths[1])),
		Transport: string(r.take(lengths[2])), Received: time.Unix(0, received)}
	var parts []*otlpdata.Batch
	for _, length := range lengths[3:] {
		chunk := r.take(length)
		if r.failed {
			return nil, errPayload
		}
		part, err := otlpdata.FromOTLP(chunk, m, noLimits)
		if err != nil {
			return nil, fmt.Errorf("chunk of a queued batch: %w", err)
		}
		parts = append(parts, part)
	}
	if r.failed || len(r.rest) > 0 || len(parts) == 0 {
		return nil, errPayload
	}
	return otlpdata.Concat(parts...)
}

// payloadReader reads a payload. Missing values are zero and set failed.
type payloadReader struct {
	rest   []byte
	failed bool
}

func (r *payloadReader) byte() byte {
	b := r.take(1)
	if r.failed {
		return 0
	}
	return b[0]
}

func (r *payloadReader) varint() int64 {
	v, n := binary.Varint(r.rest)
	r.skip(n)
	return v
}

// count reads a number of items. It fails if they cannot fit, at one byte each.
func (r *payloadReader) count() int {
	v, n := binary.Uvarint(r.rest)
	r.skip(n)
	if v > uint64(len(r.rest)) {
		r.failed = true
		return 0
	}
	return int(v)
}

func (r *payloadReader) skip(n int) {
	if n <= 0 {
		r.failed, r.rest = true, nil
		return
	}
	r.rest = r.rest[n:]
}

func (r *payloadReader) take(n int) []byte {
	if n > len(r.rest) {
		r.failed, r.rest = true, nil
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}
