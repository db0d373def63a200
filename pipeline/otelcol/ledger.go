package otelcol

import (
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// TraceID is the id of a trace.
type TraceID = pcommon.TraceID

// ledger records how many spans of each trace an instance holds. Its size is bounded by the memory
// that is reserved for spans.
type ledger struct {
	tracked bool // the component reports what it takes

	mu     sync.Mutex
	traces map[TraceID]*heldTrace
	closed bool
}

// heldTrace counts the spans of a trace that an instance holds.
type heldTrace struct {
	given  []amount // given to the component but not yet taken; only if the ledger is tracked
	inside amount
	meta   *otlpdata.Meta // of the first request
	event  time.Time      // latest event
}

// amount is a number of spans and the memory reserved for them.
type amount struct{ spans, bytes int64 }

func (a *amount) addAmount(b amount) { a.spans, a.bytes = a.spans+b.spans, a.bytes+b.bytes }

// takeSpans removes n spans and their share of the memory.
func (a *amount) takeSpans(n int64) amount {
	taken := *a
	if n < a.spans {
		taken = amount{n, a.bytes / a.spans * n}
	}
	a.addAmount(amount{-taken.spans, -taken.bytes})
	return taken
}

// addParts adds spans that are given to the component.
func (l *ledger) addParts(parts []part, meta *otlpdata.Meta, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range parts {
		t := l.traces[p.id]
		if t == nil {
			t = &heldTrace{meta: meta}
			l.traces[p.id] = t
		}
		t.event = now
		if l.tracked {
			t.given = append(t.given, p.amount)
		} else {
			t.inside.addAmount(p.amount)
		}
	}
}

// remove removes spans that the component has refused, except those that have come out.
func (l *ledger) remove(parts []part) (spans, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var sum amount
	for _, p := range parts {
		t := l.traces[p.id]
		if t == nil {
			continue
		}
		sum.addAmount(t.takeAny(p.spans))
		l.forgetEmpty(p.id, t)
	}
	return sum.spans, sum.bytes
}

// takeTrace records that the component has taken the next spans of a trace.
func (l *ledger) takeTrace(id TraceID, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.traces[id]
	if t == nil {
		return
	}
	t.event = now
	t.takeNext()
}

func (t *heldTrace) takeNext() bool {
	if len(t.given) == 0 {
		return false
	}
	t.inside.addAmount(t.given[0])
	t.given = t.given[1:]
	return true
}

// takeAny removes n spans, first from inside, then from given.
func (t *heldTrace) takeAny(n int64) amount {
	for t.inside.spans < n && t.takeNext() {
	}
	return t.inside.takeSpans(n)
}

// drop removes the spans of a trace that are inside, except the given number.
func (l *ledger) drop(id TraceID, except int64) (spans, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.traces[id]
	if t == nil || t.inside.spans <= except {
		return 0, 0
	}
	dropped := t.inside.takeSpans(t.inside.spans - except)
	l.forgetEmpty(id, t)
	return dropped.spans, dropped.bytes
}

func (l *ledger) forgetEmpty(id TraceID, t *heldTrace) {
	if t.inside.spans == 0 && len(t.given) == 0 {
		delete(l.traces, id)
	}
}

// outcome is what comes out of the component.
type outcome struct {
	amount
	made int64          // spans that the component was not given
	meta *otlpdata.Meta // of the first trace; nil if it is not known
}

// out removes spans that have come out. open is false after close.
func (l *ledger) out(td ptrace.Traces, now time.Time) (o outcome, open bool) {
	counts := map[TraceID]int64{}
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				counts[s.TraceID()]++
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return o, false
	}
	for id, n := range counts {
		o.spans += n
		t := l.traces[id]
		if t == nil {
			o.made += n
			continue
		}
		taken := t.takeAny(n)
		o.bytes += taken.bytes
		o.made += n - taken.spans
		o.meta, t.event = t.meta, now
		l.forgetEmpty(id, t)
	}
	return o, true
}

// overdue removes the spans of each trace whose latest event was before a time, unless the
// component has not taken all of them yet.
func (l *ledger) overdue(before time.Time) (spans, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var sum amount
	for id, t := range l.traces {
		if len(t.given) == 0 && t.event.Before(before) {
			sum.addAmount(t.inside)
			delete(l.traces, id)
		}
	}
	return sum.spans, sum.bytes
}

func (l *ledger) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.traces) == 0
}

// close removes everything. Spans that come out later are not passed on.
func (l *ledger) close() (spans, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	var sum amount
	for _, t := range l.traces {
		for t.takeNext() {
		}
		sum.addAmount(t.inside)
	}
	clear(l.traces)
	return sum.spans, sum.bytes
}
