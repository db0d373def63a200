package live

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// traceMemory is the reserved memory in bytes for each watched trace.
const traceMemory = 1 << 10

// watchedTrace is a trace with a matching span, until max_wait after its last span.
type watchedTrace struct {
	id      otlpdata.TraceID
	since   time.Time // arrival of its first span since its summary was sent
	last    time.Time // arrival of its last span
	sent    bool      // and no span has arrived since
	match   uint64    // latest start of a matching span, nanoseconds since the Unix epoch
	matched route.Matched
}

// traceCounts counts traces since the beginning: traces that were shown, and traces that were left
// out because too many were watched, because they are too long, and because they could not be read.
type traceCounts struct{ shown, evicted, tooLong, unread int }

// traceEvents watches the traces with matching spans, and makes an event for each trace that has
// not received a span for some time. It holds only the ids of traces; the store has their spans.
type traceEvents struct {
	config  *Config
	where   tracestore.Expr
	reader  summaryReader
	sample  sample
	watched map[otlpdata.TraceID]*watchedTrace
	total   traceCounts

	allowance     int // summaries that may be sent in the rest of this interval
	step          int // of this interval
	quietPeriod   int // intervals since the last change of the sample
	sentInQuiet   int // summaries sent in them
	waitingAtLast int // traces whose summary could not be sent yet, after the last step
}

// summaryReader reads summaries of traces.
type summaryReader interface {
	// read calls found with the summaries of traces, in any order. It leaves out unreadable traces,
	// and returns the number of traces that are too long.
	read(ids []otlpdata.TraceID, found func(*tracestore.Summary)) (tooLong int)
}

func newTraceEvents(c *Config, where tracestore.Expr, r summaryReader) *traceEvents {
	return &traceEvents{config: c, where: where, reader: r, watched: make(map[otlpdata.TraceID]*watchedTrace), allowance: c.MaxTraceRate}
}

func (e *traceEvents) span(dst []byte, s tracestore.Span) []byte {
	if !e.sample.includes(s.TraceID) {
		return dst // most spans, if there are many
	}
	matches := tracestore.Match(e.where, s)
	w := e.watched[s.TraceID]
	if w == nil {
		if !matches {
			return dst
		}
		if w = e.addTrace(s.TraceID); w == nil {
			return dst
		}
	}
	now := time.Now()
	if w.sent || w.since.IsZero() {
		w.since, w.sent = now, false
	}
	w.last = now
	if matches {
		w.match = max(w.match, s.Start)
		w.matched.Add(route.SpanKey{Start: s.Start, ID: s.SpanID})
	}
	return dst
}

// addTrace starts watching a trace. It returns nil if the trace is no longer in the sample, or if
// too many traces are watched.
func (e *traceEvents) addTrace(id otlpdata.TraceID) *watchedTrace {
	if len(e.watched) >= e.config.MaxTraces {
		e.forget(func(w *watchedTrace) bool { return w.sent })
	}
	for len(e.watched) >= e.config.MaxTraces && e.sample.halvings < maxHalvings {
		e.halve()
	}
	if !e.sample.includes(id) {
		return nil
	}
	if len(e.watched) >= e.config.MaxTraces {
		e.total.evicted++
		return nil
	}
	w := &watchedTrace{id: id}
	e.watched[id] = w
	return w
}

// halve samples half as many traces.
func (e *traceEvents) halve() {
	e.sample.halvings++
	e.quietPeriod, e.sentInQuiet = 0, 0
	e.forget(func(w *watchedTrace) bool { return !e.sample.includes(w.id) })
}

func (e *traceEvents) forget(unneeded func(*watchedTrace) bool) {
	for id, w := range e.watched {
		if unneeded(w) {
			delete(e.watched, id)
		}
	}
}

func (e *traceEvents) tick(dst []byte, last bool) []byte {
	now := time.Now()
	e.forget(func(w *watchedTrace) bool { return w.sent && now.Sub(w.last) >= e.config.MaxWait.Std() })
	e.step++
	// The summaries of an interval are spread over its steps.
	n := e.allowance - e.config.MaxTraceRate*(steps-e.step)/steps
	due := e.due(now)
	for len(due) > 2*e.config.MaxTraceRate && e.sample.halvings < maxHalvings {
		e.halve()
		due = slices.DeleteFunc(due, func(w *watchedTrace) bool { return !e.sample.includes(w.id) })
	}
	n = min(n, len(due))
	e.allowance -= n
	e.waitingAtLast = len(due) - n
	dst = e.send(dst, due[:n])
	if last {
		e.endInterval()
	}
	return dst
}

// due returns the traces whose summaries can be sent, the longest-waiting first.
func (e *traceEvents) due(now time.Time) []*watchedTrace {
	var due []*watchedTrace
	for _, w := range e.watched {
		if !w.sent && (now.Sub(w.last) >= e.config.Quiet.Std() || now.Sub(w.since) >= e.config.MaxWait.Std()) {
			due = append(due, w)
		}
	}
	slices.SortFunc(due, func(a, b *watchedTrace) int { return cmp.Or(a.last.Compare(b.last), slices.Compare(a.id[:], b.id[:])) })
	return due
}

// growAfter is the number of intervals with few summaries after which the sample is doubled.
const growAfter = 5

func (e *traceEvents) endInterval() {
	e.allowance, e.step = e.config.MaxTraceRate, 0
	e.quietPeriod++
	if e.quietPeriod < growAfter || e.sample.halvings == 0 {
		return
	}
	// Twice as many summaries must stay well below the limit.
	if e.waitingAtLast == 0 && 5*e.sentInQuiet <= 2*growAfter*e.config.MaxTraceRate {
		e.sample.halvings--
	}
	e.quietPeriod, e.sentInQuiet = 0, 0
}

// send appends the events of traces.
func (e *traceEvents) send(dst []byte, list []*watchedTrace) []byte {
	if len(list) == 0 {
		return dst
	}
	ids := make([]otlpdata.TraceID, len(list))
	for i, w := range list {
		ids[i] = w.id
		w.sent = true
	}
	e.sentInQuiet += len(list)
	found := 0
	tooLong := e.reader.read(ids, func(s *tracestore.Summary) {
		found++
		w := e.watched[s.ID]
		dst = append(strconv.AppendUint(append(dst, "event: trace\ndata: {\"match\":\""...), w.match, 10), '"')
		dst = route.AppendSummary(dst, s)
		dst = append(w.matched.AppendJSON(dst), "}\n\n"...)
	})
	e.total.shown += found
	e.total.tooLong += tooLong
	e.total.unread += len(list) - found - tooLong
	return dst
}

func (e *traceEvents) status(dst []byte, missed int) []byte {
	return fmt.Appendf(dst, `"shown":%d,"oneIn":%d,"leftOut":{"evicted":%d,"tooLong":%d,"unread":%d},"missed":%d`,
		e.total.shown, e.sample.oneIn(), e.total.evicted, e.total.tooLong, e.total.unread, missed)
}
