package live

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// traceSpan returns a batch with one span of a trace.
func traceSpan(trace uint64, span, parent byte, service, name string) *otlpdata.Batch {
	td := ptrace.NewTraces()
	querytest.AddSpan(querytest.AddService(td, service), traceID(trace), span, parent, name, 0)
	return otlpdata.FromTraces(td, otlpdata.Meta{})
}

func traceID(n uint64) (id pcommon.TraceID) {
	binary.BigEndian.PutUint64(id[8:], n)
	return id
}

func tracesStatus(shown, oneIn, tooLong, missed int) string {
	return "event: status\ndata: {" + fmt.Sprintf(`"shown":%d,"oneIn":%d,"leftOut":{"evicted":0,"tooLong":%d,"unread":0},"missed":%d`,
		shown, oneIn, tooLong, missed) + "}\n\n"
}

// watchTraces connects a client and returns a function that disconnects it.
func watchTraces(t *testing.T, store querytest.WritableStore, query string, config func(*Config)) (*client, func()) {
	t.Helper()
	_, h := newAPI(t, store, config)
	ctx, cancel := context.WithCancel(t.Context())
	c, ended := watch(ctx, h, "?of=traces"+query)
	synctest.Wait()
	return c, func() {
		cancel()
		<-ended
	}
}

// A trace with a matching span is sent when it is quiet, as it is in the store, and again after
// further spans.
func TestTraces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := querytest.FilledMemory(t, querytest.Shop())
		consume(t, store, traceSpan(7, 1, 0, "web", "root"))
		c, stop := watchTraces(t, store, "&q=%7Bname=%22yes%22%7D", nil)
		defer stop()
		expectEvents(t, c, tracesStatus(0, 1, 0, 0))
		consume(t, store, traceSpan(8, 1, 0, "web", "no"))
		consume(t, store, traceSpan(7, 2, 1, "cart", "yes"))
		time.Sleep(1500 * time.Millisecond)
		consume(t, store, traceSpan(7, 3, 2, "cart", "no"))
		time.Sleep(1500 * time.Millisecond)
		expectEvents(t, c, "")
		time.Sleep(time.Second)
		summary := func(spans, cart int) string {
			return "event: trace\ndata: " + `{"match":"1714557600000000000","traceID":"00000000000000000000000000000007","rootService":"web",` +
				`"rootName":"root","start":"1714557600000000000","duration":100000000,"spans":` + fmt.Sprint(spans) + `,"errors":0,"orphans":0,` +
				`"services":[{"name":"cart","spans":` + fmt.Sprint(cart) + `,"errors":0},{"name":"web","spans":1,"errors":0}],` +
				`"matched":{"spans":1,"ids":["0000000000000002"]}}` + "\n\n"
		}
		expectEvents(t, c, summary(3, 2)+tracesStatus(1, 1, 0, 0))
		consume(t, store, traceSpan(7, 4, 2, "cart", "late"))
		time.Sleep(4 * time.Second)
		expectEvents(t, c, summary(4, 3)+tracesStatus(2, 1, 0, 0))
	})
}

// A trace that is never quiet is sent after max_wait.
func TestTraceWithoutPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := querytest.FilledMemory(t, querytest.Shop())
		c, stop := watchTraces(t, store, "", func(c *Config) { c.MaxWait = pipeline.Duration(10 * time.Second) })
		defer stop()
		for i := range 9 {
			consume(t, store, traceSpan(7, byte(1+i), 0, "web", "poll"))
			time.Sleep(time.Second)
		}
		expectEvents(t, c, tracesStatus(0, 1, 0, 0))
		for i := range 3 {
			consume(t, store, traceSpan(7, byte(10+i), 0, "web", "poll"))
			time.Sleep(time.Second)
		}
		if got := c.received(); strings.Count(got, "event: trace") != 1 {
			t.Errorf("received %q", got)
		}
	})
}

func TestTracesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := querytest.FilledMemory(t, querytest.Shop())
		c, stop := watchTraces(t, store, "", func(c *Config) { c.MaxTraceSpans = 2 })
		defer stop()
		for i := range 3 {
			consume(t, store, traceSpan(7, byte(1+i), 0, "web", "x"))
		}
		time.Sleep(4 * time.Second)
		expectEvents(t, c, tracesStatus(0, 1, 0, 0)+tracesStatus(0, 1, 1, 0))
	})
}

// If there are too many traces, the client gets a sample of them: at most the allowed number per
// second, and not many fewer; the status says how many traces each stands for.
func TestTracesAreSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, perSecond = 10, 200
		store := querytest.Memory(t)
		c, stop := watchTraces(t, store, "", func(c *Config) { c.MaxTraceRate = rate })
		defer stop()
		next := uint64(1)
		second := func(traces int) string {
			for range traces {
				consume(t, store, traceSpan(next, 1, 0, "web", "x"))
				next++
				time.Sleep(time.Second / time.Duration(traces))
			}
			got := c.received()
			if n := strings.Count(got, "event: trace"); n > rate+rate/steps {
				t.Errorf("%d traces in a second", n)
			}
			return got
		}
		for range 20 { // to find the share
			second(perSecond)
		}
		shown := 0
		for range 20 {
			shown += strings.Count(second(perSecond), "event: trace")
		}
		last := second(perSecond)
		if shown < 20*rate/4 {
			t.Errorf("%d traces in 20 s, of at most %d", shown, 20*rate)
		}
		if !strings.Contains(last, `"oneIn":32,`) && !strings.Contains(last, `"oneIn":64,`) {
			t.Errorf("status %q", last)
		}
		for range 60 { // few traces: the share grows again
			last = second(1)
		}
		if !strings.Contains(last, `"oneIn":1,`) {
			t.Errorf("status %q", last)
		}
	})
}

// countingReader finds no trace.
type countingReader struct{ reads int }

func (r *countingReader) read(ids []otlpdata.TraceID, _ func(*tracestore.Summary)) int {
	r.reads += len(ids)
	return 0
}

// However many traces there are, at most max_traces are watched.
func TestWatchedTracesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := DefaultConfig()
		config.MaxTraces = 50
		reader := &countingReader{}
		e := newTraceEvents(&config, nil, reader)
		watched := 0
		for n := range uint64(100_000) {
			e.span(nil, spanOf(otlpdata.TraceID(traceID(n))))
			watched = max(watched, len(e.watched))
		}
		if watched != config.MaxTraces || e.sample.oneIn() < 1024 {
			t.Errorf("%d traces watched, 1 in %d", watched, e.sample.oneIn())
		}
		time.Sleep(config.Quiet.Std())
		for i := range 10 * steps {
			e.tick(nil, (i+1)%steps == 0)
		}
		if e.total.unread != reader.reads || reader.reads == 0 || reader.reads > config.MaxTraces {
			t.Errorf("%d reads, %d unread", reader.reads, e.total.unread)
		}
		time.Sleep(config.MaxWait.Std())
		if e.tick(nil, true); len(e.watched) != 0 {
			t.Errorf("%d traces are still watched", len(e.watched))
		}
	})
}

// If ids do not permit a smaller sample, further traces are evicted.
func TestEvictedTraces(t *testing.T) {
	config := DefaultConfig()
	config.MaxTraces = 1
	e := newTraceEvents(&config, nil, &countingReader{})
	var inAll []otlpdata.TraceID // samples
	for n := uint64(0); len(inAll) < 2; n++ {
		if id := otlpdata.TraceID(traceID(n)); (sample{maxHalvings}).includes(id) {
			inAll = append(inAll, id)
		}
	}
	for _, id := range inAll {
		e.span(nil, spanOf(id))
	}
	if e.total.evicted != 1 || len(e.watched) != 1 {
		t.Errorf("%d evicted, %d watched", e.total.evicted, len(e.watched))
	}
}

func spanOf(id otlpdata.TraceID) tracestore.Span {
	s := &otlpdata.Span{TraceID: id, SpanID: otlpdata.SpanID{7: 1}}
	return tracestore.Span{Resource: &otlpdata.Resource{}, Scope: &otlpdata.Scope{}, Span: s}
}

// Samples have about the expected size, and are parts of larger ones, also if ids are counted up or
// begin with a time.
func TestSample(t *testing.T) {
	for name, id := range map[string]func(n uint64) otlpdata.TraceID{
		"low":  func(n uint64) otlpdata.TraceID { return otlpdata.TraceID(traceID(n)) },
		"high": func(n uint64) (id otlpdata.TraceID) { binary.BigEndian.PutUint64(id[:8], n); return id },
	} {
		const ids = 1 << 16
		for halvings := range uint(8) {
			included := 0
			for n := range uint64(ids) {
				in := sample{halvings}.includes(id(n))
				if in {
					included++
				}
				if in && halvings > 0 && !(sample{halvings - 1}).includes(id(n)) {
					t.Fatalf("%s: %d is in the sample of 1 in %d only", name, n, 1<<halvings)
				}
			}
			if want := ids >> halvings; included < want*9/10 || included > want*11/10 {
				t.Errorf("%s: %d of %d for 1 in %d", name, included, ids, 1<<halvings)
			}
		}
	}
}
