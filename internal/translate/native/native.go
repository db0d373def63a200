// Package native translates between the native model, in its two wire forms (Thrift, protobuf api_v2), and OTLP bytes.
//
// Both ways in follow one set of rules. Tags keep their order and may repeat. Ids may be zero. Consecutive spans of one process and one
// scope share it in OTLP; no span changes its place. An error says that the bytes are no such message, or that they are made to take more
// memory than they should; sending them again cannot help.
package native

import "errors"

// Encoding is a Thrift protocol.
type Encoding uint8

// The Thrift protocols that clients use.
const (
	Binary Encoding = iota + 1 // strict and non-strict
	Compact
)

// Growth bounds the output: translating n bytes makes at most Growth*n + 64 bytes of OTLP, or fails. While it runs, a translation takes at
// most WorkGrowth*n bytes + 256 KiB, the output included. That is what attackers can reach. What applications send becomes from half as
// large (binary Thrift) to twice as large (compact Thrift), and takes little more than twice that while it is translated.
const (
	Growth     = 10
	WorkGrowth = 48
)

// Batch is what a Thrift batch says.
type Batch struct {
	OTLP   []byte // an encoded ExportTraceServiceRequest, which the caller owns
	Spans  int
	Client ClientStats
}

// ClientStats is what a client tells about itself with a batch.
type ClientStats struct {
	ID       string // process tag client-uuid, a copy; "" if there is none
	SeqNo    int64  // number of the batch, from 1
	HasSeqNo bool
	HasStats bool // whether the counts below were sent; they are totals since the client's start
	// Spans that the client lost.
	FullQueue, TooLarge, FailedToEmit int64
}

// FromEmitBatch translates the arguments of emitBatch. What follows them is ignored.
func FromEmitBatch(args []byte, enc Encoding) (Batch, error) {
	return fromThrift(args, enc, (*translator).emitBatchArgs)
}

// FromThrift translates a bare Batch struct. What follows it is ignored.
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

// ErrOutput is the error of a translation that makes more than its caller has room for.
var ErrOutput = errors.New("native: the spans would become much larger than they are")

// FromPostSpans translates a PostSpansRequest into an ExportTraceServiceRequest, which the caller owns. Where that becomes larger than most
// bytes, the translation ends after the span with which it does, and the error is [ErrOutput]. If most is 0, only [Growth] is the limit.
func FromPostSpans(b []byte, most int) ([]byte, error) {
	t := translators.Get().(*translator)
	defer t.release()
	if err := t.postSpans(b, most); err != nil {
		return nil, err
	}
	return t.output(), nil
}
