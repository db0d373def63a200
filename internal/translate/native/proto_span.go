package native

import (
	"errors"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

var (
	errTraceIDLength = errors.New("invalid length for TraceID")
	errSpanIDLength  = errors.New("invalid length for SpanID")
	errDense         = errors.New("native: too many empty tags, logs or references in one span or process")
)

// An empty tag takes two bytes on the wire but many times that in memory. So the number of tags,
// logs and references of a span or process is limited to freeItems plus one per bytesPerItem bytes.
const (
	freeItems    = 1024
	bytesPerItem = 5
)

// MaxItems returns the maximum number of tags, logs and references that FromPostSpans accepts in an
// encoded Span or Process.
func MaxItems(b []byte) int { return freeItems + len(b)/bytesPerItem }

// protoSpan reads a Span into t.span. It returns its process, or nil if it has none.
func (t *translator) protoSpan(b []byte) (process []byte, err error) {
	s := &t.span
	var start, duration seconds
	var own mergedMessage
	t.items = MaxItems(b)
	r := protoReader{b: b}
	for r.next() {
		switch r.key {
		case spanTraceID<<3 | protoenc.Length:
			s.TraceID = r.traceID()
		case spanID<<3 | protoenc.Length:
			s.SpanID = r.spanID()
		case spanOperationName<<3 | protoenc.Length:
			s.Name = unsafeString(r.data)
		case spanReferences<<3 | protoenc.Length:
			t.protoReference(&r)
		case spanFlags<<3 | protoenc.Varint:
			t.flags = uint32(r.num)
		case spanStartTime<<3 | protoenc.Length:
			r.seconds(&start)
		case spanDuration<<3 | protoenc.Length:
			r.seconds(&duration)
		case spanTags<<3 | protoenc.Length:
			s.Attributes = t.protoTag(&r, s.Attributes)
		case spanLogs<<3 | protoenc.Length:
			t.protoLog(&r)
		case spanProcess<<3 | protoenc.Length:
			if err := own.addPiece(r.data); err != nil {
				r.fail(err)
			}
		case spanWarnings<<3 | protoenc.Length:
			t.addWarning(r.data)
		}
	}
	s.Start, s.End = start.time(), start.add(duration).time()
	if len(t.warnings) > 0 {
		s.Attributes = append(s.Attributes, otlpdata.KeyValue{Key: warningsAttribute,
			Value: otlpdata.EncodedValue(otlpdata.ValueArray, unsafeString(t.warnings))})
	}
	return own.data, r.err
}

// addWarning appends an element to an encoded ArrayValue (opentelemetry-proto, common/v1).
func (t *translator) addWarning(text []byte) {
	t.warnings = protoenc.AppendHeader(t.warnings, 1, 1+protoenc.SizeVarint(uint64(len(text)))+len(text))
	t.warnings = protoenc.AppendBytes(t.warnings, 1, text)
}

func (t *translator) protoReference(r *protoReader) {
	if !t.allow(r) {
		return
	}
	var ref reference
	f := protoReader{b: r.data}
	for f.next() {
		switch f.key {
		case refTraceID<<3 | protoenc.Length:
			ref.traceID = f.traceID()
		case refSpanID<<3 | protoenc.Length:
			ref.spanID = f.spanID()
		case refRefType<<3 | protoenc.Varint:
			ref.typ = int32(f.num)
		}
	}
	t.refs = append(t.refs, ref)
	r.takeFields(&f)
}

func (t *translator) protoLog(r *protoReader) {
	if !t.allow(r) {
		return
	}
	var time seconds
	from := len(t.nested)
	f := protoReader{b: r.data}
	for f.next() {
		switch f.key {
		case logTimestamp<<3 | protoenc.Length:
			f.seconds(&time)
		case logFields<<3 | protoenc.Length:
			t.nested = t.protoTag(&f, t.nested)
		}
	}
	t.addEvent(time.time(), from)
	r.takeFields(&f)
}

// protoProcess reads a Process into t.process.
func (t *translator) protoProcess(b []byte) error {
	t.process.reset()
	t.items = MaxItems(b)
	r := protoReader{b: b}
	for r.next() {
		switch r.key {
		case processServiceName<<3 | protoenc.Length:
			t.process.service = unsafeString(r.data)
		case processTags<<3 | protoenc.Length:
			t.process.tags = t.protoTag(&r, t.process.tags)
		}
	}
	return r.err
}

// allow counts a tag, log or reference. If there are too many, it fails and returns false.
func (t *translator) allow(r *protoReader) bool {
	if t.items--; t.items < 0 {
		return r.fail(errDense)
	}
	return true
}

// takeFields copies the error of the reader of a nested message.
func (r *protoReader) takeFields(f *protoReader) {
	if f.err != nil {
		r.fail(f.err)
	}
}

// traceID reads a trace id. Ids of 64 bits may have eight bytes.
func (r *protoReader) traceID() (id otlpdata.TraceID) {
	switch len(r.data) {
	case 16:
		return otlpdata.TraceID(r.data)
	case 8:
		copy(id[8:], r.data)
	default:
		r.fail(errTraceIDLength)
	}
	return id
}

func (r *protoReader) spanID() (id otlpdata.SpanID) {
	if len(r.data) != len(id) {
		r.fail(errSpanIDLength)
		return id
	}
	return otlpdata.SpanID(r.data)
}

// seconds merges a Timestamp or Duration into s.
func (r *protoReader) seconds(s *seconds) {
	f := protoReader{b: r.data}
	for f.next() {
		switch f.key {
		case timeSeconds<<3 | protoenc.Varint:
			s.seconds = int64(f.num)
		case timeNanos<<3 | protoenc.Varint:
			s.nanos = int64(int32(f.num))
		}
	}
	r.takeFields(&f)
}
