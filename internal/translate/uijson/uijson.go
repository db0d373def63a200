// Package uijson writes the spans of a trace as the trace JSON of the query API, which the web page
// and API clients read from /api/traces.
//
// The result is valid JSON for every trace:
//   - A string attribute that is not UTF-8 becomes a tag of type binary. A span name that is not
//     UTF-8 is shown as `invalid-span-name`, with the original name in a binary tag of that name.
//     The n-th such attribute key becomes `invalid-tag-key-{n}`, with `key:value` as binary value.
//   - An int64 beyond 2^53-1, which JavaScript would round, and a float64 without a JSON number
//     (NaN, +Inf, -Inf) become strings; the type of the tag does not change.
//   - A span that ends before it starts has a duration of 0 and a warning.
//
// The flags of a span are Jaeger's flags. The attribute that carries them (otlpdata.FlagsAttribute)
// is not shown.
//
// Unless the raw trace is requested, it is adjusted by package adjust, and tags are sorted.
package uijson

import (
	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Options configure how a trace is shown.
type Options struct {
	adjust.Options
	// Flush, if set, is called with the bytes appended so far after every span and every process.
	// It may consume the bytes and returns the buffer to append to. Its error ends the translation
	// and is returned.
	Flush func(dst []byte) ([]byte, error)
}

// AppendTrace appends one trace, whose spans the batches hold in order, as a JSON object. The trace
// has the id of its first span, or "" without spans. Any error that does not come from Flush means
// that a batch cannot be read; the appended JSON is then incomplete.
func AppendTrace(dst []byte, opt Options, batches ...*otlpdata.Batch) ([]byte, error) {
	w := writers.Get().(*writer)
	w.dst, w.flush, w.raw = dst, opt.Flush, opt.AsStored(batches...)
	err := adjust.Walk(opt.Options, w, batches...)
	if err == nil {
		err = w.end()
	}
	dst = w.dst
	w.release()
	return dst, err
}
