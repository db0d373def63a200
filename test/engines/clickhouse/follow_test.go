package clickhouse_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/clickhouse"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
)

// consumer stores spans.
type consumer interface {
	Consume(ctx context.Context, b *otlpdata.Batch) error
}

// span describes a span of tests. Times are in nanoseconds since the Unix epoch.
type span struct {
	service, name     string
	trace, id, parent uint64
	kind              ptrace.SpanKind
	start             uint64
	peer              string // attribute peer.service, unless it is ""
}

// batchOf returns a batch with spans.
func batchOf(tb testing.TB, tenant string, spans ...span) *otlpdata.Batch {
	tb.Helper()
	td := ptrace.NewTraces()
	for _, s := range spans {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", s.service)
		sp := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		sp.SetTraceID(pcommon.TraceID{8: byte(s.trace >> 8), 15: byte(s.trace)})
		sp.SetSpanID(pcommon.SpanID{6: byte(s.id >> 8), 7: byte(s.id)})
		if s.parent != 0 {
			sp.SetParentSpanID(pcommon.SpanID{6: byte(s.parent >> 8), 7: byte(s.parent)})
		}
		sp.SetName(s.name)
		if s.peer != "" {
			sp.Attributes().PutStr("peer.service", s.peer)
		}
		sp.SetKind(s.kind)
		sp.SetStartTimestamp(pcommon.Timestamp(s.start))
		sp.SetEndTimestamp(pcommon.Timestamp(s.start + 1000))
	}
	enc, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		tb.Fatal(err)
	}
	b, err := otlpdata.FromOTLP(enc, otlpdata.Meta{Tenant: tenant}, otlpdata.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func consume(tb testing.TB, store any, b *otlpdata.Batch) {
	tb.Helper()
	if err := store.(consumer).Consume(tb.Context(), b); err != nil {
		tb.Fatal(err)
	}
}

// drain takes spans from a feed until it has taken or missed as many as wanted. It returns their
// names, sorted.
func drain(tb testing.TB, f *tracestore.Feed, want int) (names []string, missed int) {
	tb.Helper()
	late := time.After(2 * time.Minute)
	for len(names)+missed < want {
		select {
		case <-f.Ready():
		case <-late:
			tb.Fatalf("feed: %d spans %v, %d missed, want %d", len(names), names, missed, want)
		}
		b, n := f.Take()
		missed += n
		if b == nil {
			continue
		}
		if err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
			names = append(names, s.Resource.Service+" "+s.Name)
			return nil
		}); err != nil {
			tb.Error(err)
		}
	}
	slices.Sort(names)
	return names, missed
}

// as returns a store as an optional interface.
func as[T any](tb testing.TB, store any) T {
	tb.Helper()
	optional, ok := tracestore.As[T](tb.Context(), "", store)
	if !ok {
		tb.Fatalf("the store is no %T", &optional)
	}
	return optional
}

func follow(tb testing.TB, store any, tenant string, capacity int) *tracestore.Feed {
	tb.Helper()
	f, err := as[tracestore.Follower](tb, store).Follow(tb.Context(), tenant, capacity)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(f.Close)
	return f
}

// TestFollowOtherProcess checks that a feed has the spans that another exporter stores, each batch
// once, also after the server was killed.
func TestFollowOtherProcess(t *testing.T) {
	server := engine.Start(t, engine.Options{})
	const database = "follow"
	// The stores are degraded while the server is down.
	degraded := func(_ *clickhouse.Config, set *pipeline.Settings) { set.Report = func(error) {} }
	collector, query := openOn(t, server, database, degraded), openOn(t, server, database, degraded)
	now := uint64(time.Now().UnixNano())
	two := func(tenant string, n int) *otlpdata.Batch {
		name := fmt.Sprintf("op %d", n)
		return batchOf(t, tenant, span{service: "a", name: name, trace: uint64(n), id: 1, start: now},
			span{service: "b", name: name, trace: uint64(n), id: 2, parent: 1, start: 1}) // in another partition
	}
	consume(t, collector, two("", 1))
	feed, tiny := follow(t, query, "", 1<<20), follow(t, query, "", 1)
	consume(t, collector, two("", 2))
	consume(t, collector, two("other", 3))
	consume(t, query, two("", 4))
	consume(t, collector, two("", 5))
	want := []string{"a op 2", "a op 4", "a op 5", "b op 2", "b op 4", "b op 5"}
	if got, missed := drain(t, feed, len(want)); !slices.Equal(got, want) || missed != 0 {
		t.Errorf("feed: %v, %d missed, want %v", got, missed, want)
	}
	if got, missed := drain(t, tiny, len(want)); len(got) != 0 || missed != len(want) {
		t.Errorf("feed without capacity: %v, %d missed", got, missed)
	}
	server.Kill()
	server.Restart(t)
	consume(t, collector, two("", 6))
	if got, _ := drain(t, feed, 2); !slices.Equal(got, []string{"a op 6", "b op 6"}) {
		t.Errorf("feed after a restart of the server: %v", got)
	}
}

// TestFollowDamagedRow checks that a feed misses a span whose row is damaged, and has each of the
// others once.
func TestFollowDamagedRow(t *testing.T) {
	server := engine.Shared(t)
	database := server.Database(t)
	collector, query := openOn(t, server, database, nil), openOn(t, server, database, nil)
	now := uint64(time.Now().UnixNano())
	one := func(n int) *otlpdata.Batch {
		return batchOf(t, "", span{service: "a", name: fmt.Sprintf("op %d", n), trace: uint64(n), id: 1, start: now})
	}
	consume(t, collector, one(1))
	feed := follow(t, query, "", 1<<20)
	columns := strings.TrimSpace(server.Exec(t, "SELECT arrayStringConcat(groupArray(name), ', ') FROM system.columns WHERE database = '"+
		database+"' AND table = 'payload' AND default_kind != 'ALIAS' AND name NOT IN ('batch', 'stored', 'call')"))
	payload := "`" + database + "`.payload"
	server.Exec(t, "INSERT INTO "+payload+" ("+columns+", batch, call) SELECT "+columns+
		", '7', if(number = 1, '', call) FROM "+payload+" CROSS JOIN numbers(3) AS n")
	consume(t, collector, one(2))
	if got, missed := drain(t, feed, 4); !slices.Equal(got, []string{"a op 1", "a op 1", "a op 2"}) || missed != 1 {
		t.Errorf("feed: %v, %d missed", got, missed)
	}
	consume(t, collector, one(3))
	if got, missed := drain(t, feed, 1); !slices.Equal(got, []string{"a op 3"}) || missed != 0 {
		t.Errorf("feed after a damaged row: %v, %d missed", got, missed)
	}
}
