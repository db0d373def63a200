// Package uijson turns the spans of a trace, as OTLP carries them, into the trace JSON of the query API: what the web page and API
// clients read from /api/traces.
//
// Whatever the spans hold, the result is valid JSON that a client can read:
//   - a string attribute that is not UTF-8 is a tag of type binary, a span name that is not is shown as `invalid-span-name` with the
//     original in a binary tag of that name, an attribute key that is not becomes `invalid-tag-key-{n}` with `key:value` in binary;
//   - an int64 beyond 2^53-1, which JavaScript would round, and a float64 that JSON has no number for (NaN, +Inf, -Inf) is a string, under
//     its own type;
//   - a span that ends before it starts lasts no time and carries a warning.
//
// The flags of a span are those of the native model; the attribute that carries them (otlpdata.FlagsAttribute) is no tag.
//
// Unless the raw trace is asked for, it is adjusted as package adjust says, and tags are sorted.
package uijson

import (
	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Options say how a trace is shown.
type Options struct {
	adjust.Options
	// Flush, when set, is called with what is appended so far after every span and every process. It may take that away, and returns what to append to. Its
	// error ends the work and is returned.
	Flush func(dst []byte) ([]byte, error)
}

// AppendTrace appends the trace whose spans the batches hold, in order, as one JSON object. The trace has the id of its first span, and
// "" when there is none. An error other than that of Flush says that a batch cannot be read; what was appended then is a part.
func AppendTrace(dst []byte, opt Options, pieces ...*otlpdata.Batch) ([]byte, error) {
	w := writers.Get().(*writer)
	w.dst, w.flush, w.raw = dst, opt.Flush, opt.AsStored(pieces...)
	err := adjust.Walk(opt.Options, w, pieces...)
	if err == nil {
		err = w.end()
	}
	dst = w.dst
	w.release()
	return dst, err
}
