package uijson

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// writer appends the spans of a trace and collects their processes, which follow the spans in order
// of first use.
type writer struct {
	dst       []byte
	flush     func([]byte) ([]byte, error)
	raw       bool
	spans     int
	processes []string
	known     map[string]int // encoded process -> index

	// The current resource and scope.
	service     string
	processTags []otlpdata.KeyValue
	process     int // index in processes, or notListed
	scopeTags   []otlpdata.KeyValue

	// Reused memory.
	tags     []otlpdata.KeyValue
	encoded  []byte // a process
	warnings []string
}

const notListed = -1

var _ otlpdata.Visitor = (*writer)(nil)

var writers = sync.Pool{New: func() any { return &writer{known: make(map[string]int)} }}

// release returns the writer to the pool, unless it has grown large.
func (w *writer) release() {
	const maxPooled, maxPooledBytes = 1024, 64 << 10
	if len(w.known) > maxPooled || cap(w.processTags) > maxPooled || cap(w.scopeTags) > maxPooled || cap(w.tags) > maxPooled ||
		cap(w.encoded) > maxPooledBytes ||
		cap(w.warnings) > maxPooled {
		return
	}
	clear(w.processes)
	clear(w.known)
	for _, kvs := range [][]otlpdata.KeyValue{w.processTags, w.scopeTags, w.tags} {
		clear(kvs[:cap(kvs)])
	}
	clear(w.warnings[:cap(w.warnings)])
	*w = writer{
		processes: w.processes[:0], known: w.known, processTags: w.processTags[:0], scopeTags: w.scopeTags[:0], tags: w.tags[:0],
		encoded: w.encoded[:0], warnings: w.warnings[:0],
	}
	writers.Put(w)
}

// Resource sets the current process.
func (w *writer) Resource(r *otlpdata.Resource) error {
	w.service, w.process = r.Service, notListed
	w.processTags = w.processTags[:0]
	for _, kv := range r.Attributes {
		if kv.Key != "service.name" {
			w.processTags = append(w.processTags, kv)
		}
	}
	nameInvalidKeys(w.processTags)
	if !w.raw {
		adjust.SortAttributes(w.processTags)
	}
	return nil
}

// Scope sets the tags with which every span of the scope begins.
func (w *writer) Scope(s *otlpdata.Scope) error {
	w.scopeTags = appendTextTag(w.scopeTags[:0], "otel.scope.name", s.Name)
	w.scopeTags = appendTextTag(w.scopeTags, "otel.scope.version", s.Version)
	return nil
}

// Span writes a span.
func (w *writer) Span(s *otlpdata.Span) error {
	if w.spans == 0 {
		w.beginTrace(s.TraceID)
	}
	w.dst = w.appendSpan(comma(w.dst, w.spans), s)
	w.spans++
	return w.spill()
}

func (w *writer) spill() (err error) {
	if w.flush != nil {
		w.dst, err = w.flush(w.dst)
	}
	return err
}

// beginTrace writes the text before the spans.
func (w *writer) beginTrace(id otlpdata.TraceID) {
	w.dst = appendTraceID(append(w.dst, `{"traceID":"`...), id)
	w.dst = append(w.dst, `","spans":[`...)
}

// end writes the text after the spans.
func (w *writer) end() error {
	if w.spans == 0 {
		w.dst = append(w.dst, `{"traceID":"","spans":[`...)
	}
	w.dst = append(w.dst, `],"processes":{`...)
	for i, p := range w.processes {
		w.dst = append(comma(w.dst, i), '"')
		w.dst = append(appendProcessID(w.dst, i), `":`...)
		w.dst = append(w.dst, p...)
		if err := w.spill(); err != nil {
			return err
		}
	}
	w.dst = append(w.dst, `},"warnings":null}`...)
	return nil
}

// appendDuration appends the duration of a span, and adds a warning if it was repaired.
func (w *writer) appendDuration(dst []byte, s *otlpdata.Span) []byte {
	ns, repaired := s.Duration()
	if repaired {
		w.warnings = append(w.warnings, fmt.Sprintf(
			"Negative duration detected, sanitizing end timestamp. Original end timestamp: %s, adjusted to: %s",
			timestamp(s.End), timestamp(s.Start+ns)))
	}
	return appendMicros(append(dst, `,"duration":`...), ns)
}

// processIndex returns the index of the current process.
func (w *writer) processIndex() int {
	if w.process != notListed {
		return w.process
	}
	w.encoded = appendProcess(w.encoded[:0], w.service, w.processTags)
	i, ok := w.known[string(w.encoded)]
	if !ok {
		p := string(w.encoded)
		i = len(w.processes)
		w.known[p] = i
		w.processes = append(w.processes, p)
	}
	w.process = i
	return i
}

func timestamp(ns uint64) string { return time.Unix(0, int64(ns)).UTC().String() }

func appendProcessID(dst []byte, index int) []byte {
	return strconv.AppendInt(append(dst, 'p'), int64(index)+1, 10)
}

// comma appends the comma before element i of a list, except before the first.
func comma(dst []byte, i int) []byte {
	if i == 0 {
		return dst
	}
	return append(dst, ',')
}
