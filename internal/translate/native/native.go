// Package native translates between Jaeger's model, in its two wire forms (Thrift and the protobuf
// package api_v2), and OTLP bytes.
//
// Both incoming forms follow the same rules. Tags keep their order and may repeat. Ids may be zero.
// Consecutive spans of one process and one scope share a resource and a scope in OTLP; the order of
// spans does not change. Errors mean that the bytes are not such a message, or that the message
// needs more memory than allowed. They are permanent: resending the bytes cannot succeed.
package native

import "errors"

// Encoding is a Thrift protocol.
type Encoding uint8

// The Thrift protocols that clients use.
const (
	Binary Encoding = iota + 1 // strict and non-strict
	Compact
)

// Limits of a translation, as multiples of the input. The output of n bytes is at most MaxGrowth*n
// + 64 bytes; the translation fails otherwise. The memory during the translation, including the
// output, is at most MaxWorkGrowth*n bytes + 256 KiB. Only hostile requests reach these limits. For
// ordinary requests the output is between half (binary Thrift) and twice (compact Thrift) the size
// of the input, and the memory little more than twice the output.
const (
	MaxGrowth     = 10
	MaxWorkGrowth = 48
)

// Batch is the translation of a Thrift batch.
type Batch struct {
	OTLP   []byte // an encoded ExportTraceServiceRequest, which the caller owns
	Spans  int
	Client ClientStats
}

// ClientStats is what a client reports about itself with a batch.
type ClientStats struct {
	ID       string // process tag client-uuid, or ""
	SeqNo    int64  // sequence number of the batch, from 1
	HasSeqNo bool
	HasStats bool // whether the counts below were sent
	// Numbers of spans that the client has lost since its start.
	FullQueue, TooLarge, FailedToEmit int64
}

// FromEmitBatch translates the arguments of emitBatch. Bytes after them are ignored.
func FromEmitBatch(args []byte, enc Encoding) (Batch, error) {
	return fromThrift(args, enc, (*translator).emitBatchArgs)
}

// FromThrift translates a bare Batch struct. Bytes after it are ignored.
func FromThrift(b []byte, enc Encoding) (Batch, error) {
	return fromThrift(b, enc, (*translator).thriftBatch)
}

func fromThrift(b []byte, enc Encoding, read func(*translator, *thriftReader, *Batch)) (Batch, error) {
	t := translators.Get().(*translator)
	defer t.release()
	r := thriftReader{b: b, compact: enc == Compact}
	var out Batch
	read(t, &r, &out)
	if r.err != nil {
		return Batch{}, r.err
	}
	out.OTLP, out.Spans = t.output(), t.spans
	return out, nil
}

// ErrOutputTooLarge is the error of a translation whose output exceeds the limit of the caller.
var ErrOutputTooLarge = errors.New("native: translated spans exceed the output limit")

// FromPostSpans translates a PostSpansRequest into an ExportTraceServiceRequest, which the caller
// owns. If the output exceeds maxOutput bytes, the translation stops after the current span with
// [ErrOutputTooLarge]. With 0, only [MaxGrowth] limits the output.
func FromPostSpans(b []byte, maxOutput int) ([]byte, error) {
	t := translators.Get().(*translator)
	defer t.release()
	if err := t.postSpans(b, maxOutput); err != nil {
		return nil, err
	}
	return t.output(), nil
}
