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
			if err := p.add(r.data, allSpans); err != nil {
				return nil, err
			}
		}
		if r.err != nil {
			return nil, r.err
		}
	}
	return t.output(), nil
}

// FromModelSpans translates encoded Spans of the native model, each with its own process, into one
// ExportTraceServiceRequest, which the caller owns. maxOutput is as in [FromPostSpans].
func FromModelSpans(maxOutput int, spans ...[]byte) ([]byte, error) {
	t := translators.Get().(*translator)
	defer t.release()
	p := newPostSpans(t, maxOutput)
	for _, span := range spans {
		if err := p.add(slices.Clip(span), allSpans); err != nil {
			return nil, err
		}
	}
	return t.output(), nil
}

// messageSpans is the field of the spans in both messages.
const messageSpans = 1
