package native

import (
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// FromSpans translates messages of the remote storage API, WriteSpanRequest or SpansResponseChunk,
// into one ExportTraceServiceRequest, which the caller owns. Both messages hold Spans in field 1,
// each with its own process or none. maxOutput is as in [FromPostSpans].
func FromSpans(maxOutput int, messages ...[]byte) ([]byte, error) {
	t := translators.Get().(*translator)
	defer t.release()
	p := newPostSpans(t, maxOutput)
	for _, m := range messages {
		r := protoReader{b: m}
		for r.next() {
			if r.key != messageSpans<<3|protoenc.Length {
				continue
			}
			if err := p.addSpan(r.data, allSpans); err != nil {
				return nil, err
			}
		}
		if r.err != nil {
			return nil, r.err
		}
	}
	return t.output(), nil
}

// FromModelSpans translates encoded Spans of Jaeger's model, each with its own process, into one
// ExportTraceServiceRequest, which the caller owns. Spans of one process are grouped, in the order
// of the processes, because each span would otherwise repeat its process. maxOutput is as in
// [FromPostSpans].
func FromModelSpans(maxOutput int, spans ...[]byte) ([]byte, error) {
	t := translators.Get().(*translator)
	defer t.release()
	p := newPostSpans(t, maxOutput)
	for _, span := range byProcess(spans) {
		if err := p.addSpan(slices.Clip(span), allSpans); err != nil {
			return nil, err
		}
	}
	return t.output(), nil
}

// byProcess returns spans sorted by the first appearance of their process. Invalid spans may be
// anywhere.
func byProcess(spans [][]byte) [][]byte {
	if len(spans) < 2 {
		return spans
	}
	groups := make(map[string]int)
	groupOf := make([]int, len(spans))
	var starts []int // of each group: the number of spans, then the place of the next one
	for i, span := range spans {
		process := unsafeString(processOf(span))
		group, ok := groups[process]
		if !ok {
			group = len(starts)
			groups[process] = group
			starts = append(starts, 0)
		}
		groupOf[i] = group
		starts[group]++
	}
	if len(starts) == 1 {
		return spans
	}
	next := 0
	for group, size := range starts {
		starts[group], next = next, next+size
	}
	sorted := make([][]byte, len(spans))
	for i, group := range groupOf {
		sorted[starts[group]] = spans[i]
		starts[group]++
	}
	return sorted
}

// processOf returns the encoded process of a span, or nil.
func processOf(span []byte) (process []byte) {
	r := protoReader{b: span}
	for r.next() {
		if r.key == spanProcess<<3|protoenc.Length {
			process = r.data
		}
	}
	return process
}

// messageSpans is the field number of the spans in both messages.
const messageSpans = 1
