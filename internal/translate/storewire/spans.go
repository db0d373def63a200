package storewire

import (
	"encoding/binary"
	"iter"
	"slices"

	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// PutSelection converts the arguments of tracestore.SpanSelector.
func PutSelection(trace otlpdata.TraceID, spans []otlpdata.SpanID) *store_v1.SelectSpansRequest {
	m := &store_v1.SelectSpansRequest{TraceId: trace[:], Ids: make([]uint64, len(spans))}
	for i := range spans {
		m.Ids[i] = binary.BigEndian.Uint64(spans[i][:])
	}
	return m
}

// GetSelection returns the arguments of tracestore.SpanSelector.
func GetSelection(m *store_v1.SelectSpansRequest) (trace otlpdata.TraceID, spans []otlpdata.SpanID, err error) {
	spans = make([]otlpdata.SpanID, len(m.GetIds()))
	for i, id := range m.GetIds() {
		binary.BigEndian.PutUint64(spans[i][:], id)
	}
	trace, err = GetTraceID(m.GetTraceId())
	return trace, spans, err
}

// PutTraceVersion converts the version of a trace.
func PutTraceVersion(v tracestore.TraceVersion) *store_v1.TraceVersionResponse {
	return &store_v1.TraceVersionResponse{Number: v.Number, Stored: putTime(v.Stored)}
}

// GetTraceVersion returns the version of a trace.
func GetTraceVersion(m *store_v1.TraceVersionResponse) tracestore.TraceVersion {
	return tracestore.TraceVersion{Number: m.GetNumber(), Stored: getTime(m.GetStored())}
}

// PutSpanCondition converts the arguments of tracestore.SpanFinder.
func PutSpanCondition(trace otlpdata.TraceID, c tracestore.SpanCondition) *store_v1.FindSpansRequest {
	return &store_v1.FindSpansRequest{TraceId: trace[:], Text: []byte(c.Text), Where: putExpr(c.Where)}
}

// GetSpanCondition returns the arguments of tracestore.SpanFinder.
func GetSpanCondition(m *store_v1.FindSpansRequest) (trace otlpdata.TraceID, c tracestore.SpanCondition, err error) {
	c.Text = string(m.GetText())
	if c.Where, err = (&exprReader{}).get(m.GetWhere(), 0); err != nil {
		return trace, c, err
	}
	trace, err = GetTraceID(m.GetTraceId())
	return trace, c, err
}

// idsPerMessage is the maximum number of span ids in one message.
const idsPerMessage = 1 << 16

// PutFoundSpans returns the messages with spans that were found.
func PutFoundSpans(f tracestore.FoundSpans) iter.Seq[*store_v1.FindSpansResponse] {
	return func(yield func(*store_v1.FindSpansResponse) bool) {
		m := &store_v1.FindSpansResponse{Spans: int64(f.Spans)}
		for part := range slices.Chunk(f.IDs, idsPerMessage) {
			for i := range part {
				m.Ids = append(m.Ids, binary.BigEndian.Uint64(part[i][:]))
			}
			if !yield(m) {
				return
			}
			m = &store_v1.FindSpansResponse{}
		}
		if len(f.IDs) == 0 {
			yield(m)
		}
	}
}

// GetFoundSpans returns spans that were found.
func GetFoundSpans(m *store_v1.FindSpansResponse) tracestore.FoundSpans {
	f := tracestore.FoundSpans{IDs: make([]otlpdata.SpanID, len(m.GetIds())), Spans: int(m.GetSpans())}
	for i, id := range m.GetIds() {
		binary.BigEndian.PutUint64(f.IDs[i][:], id)
	}
	return f
}
