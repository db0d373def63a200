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
// Unless the raw trace is asked for, tags are sorted, duplicates and empty links dropped, shared span ids made unique, IPv4 addresses that
// came as numbers written out, and the tags that name the tracing library moved to the process. Clock skew is not corrected.
package uijson

import (
	"fmt"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Options say how a trace is shown.
type Options struct {
	// Raw leaves spans as they are stored: nothing is sorted, de-duplicated or corrected.
	Raw bool
	// MaxSpans is how many spans of the trace are shown; the first of them carries a warning when there are more. 0 shows all.
	MaxSpans int
	// Flush, when set, is called with what is appended so far after every span. It may take that away, and returns what to append to. Its
	// error ends the work and is returned.
	Flush func(dst []byte) ([]byte, error)
}

// AppendTrace appends the trace whose spans the batches hold, in order, as one JSON object. The trace has the id of its first span, and
// "" when there is none. An error other than that of Flush says that a batch cannot be read; nothing is appended then.
func AppendTrace(dst []byte, opt Options, pieces ...*otlpdata.Batch) ([]byte, error) {
	c := collectors.Get().(*collector)
	defer c.release()
	c.opt = opt
	spans := 0
	for _, b := range pieces {
		spans += b.Len()
	}
	c.room(spans)
	for _, b := range pieces {
		if err := c.add(b); err != nil {
			return dst, fmt.Errorf("reading a trace: %w", err)
		}
	}
	if !opt.Raw {
		c.adjust()
	}
	if c.cut {
		c.spans[0].warnings = append(c.spans[0].warnings,
			fmt.Sprintf("trace has more than %d spans, showing first %d spans only", opt.MaxSpans, opt.MaxSpans))
	}
	return appendTrace(dst, opt.Flush, c.spans, c.processes)
}

func appendTrace(dst []byte, flush func([]byte) ([]byte, error), spans []span, processes []string) (_ []byte, err error) {
	dst = append(dst, `{"traceID":"`...)
	if len(spans) > 0 {
		dst = appendTraceID(dst, spans[0].traceID)
	}
	dst = append(dst, `","spans":[`...)
	for i := range spans {
		dst = appendSpan(comma(dst, i), &spans[i])
		if flush == nil {
			continue
		}
		if dst, err = flush(dst); err != nil {
			return dst, err
		}
	}
	dst = append(dst, `],"processes":{`...)
	for i, p := range processes {
		dst = append(comma(dst, i), '"')
		dst = append(appendProcessID(dst, i), `":`...)
		dst = append(dst, p...)
	}
	return append(dst, `},"warnings":null}`...), nil
}

func appendProcessID(dst []byte, index int) []byte {
	return strconv.AppendInt(append(dst, 'p'), int64(index)+1, 10)
}

// comma appends what stands before element i of a list.
func comma(dst []byte, i int) []byte {
	if i == 0 {
		return dst
	}
	return append(dst, ',')
}
