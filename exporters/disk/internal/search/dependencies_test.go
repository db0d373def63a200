package search

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storetest"
)

// withoutCalls hides that a store counts calls, which only one can be held to that keeps the spans of a request together.
func withoutCalls(s interface {
	storetest.Subject
	tracestore.AttributeCatalog
}) storetest.Subject {
	return struct {
		storetest.Subject
		tracestore.AttributeCatalog
	}{s, s}
}

// callStore is a realStore that keeps the spans of a request together.
type callStore struct{ *realStore }

func newCallStore(tb testing.TB, seed uint64, o Options) callStore {
	s := &realStore{tb: tb, fs: vfstest.NewMem(), rng: rand.New(rand.NewPCG(seed, 3))}
	s.tables = append(s.tables, s.newTable(), s.newTable())
	s.Engine = New(s.view, o)
	return callStore{s}
}

func (s callStore) Consume(_ context.Context, b *otlpdata.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.rng.IntN(len(s.tables))
	if _, err := s.tables[i].Append(b, 0); err != nil {
		return err
	}
	if len(s.segments) < 20 && s.tables[i].Rows() > 0 && s.rng.IntN(4) == 0 {
		s.seal(i)
	}
	return nil
}

// TestCalls: one decoder must do, too.
func TestCalls(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for i := range uint64(6) {
		s := newCallStore(t, seed+i, Options{Decoders: 1})
		m := storetest.NewModel(t, seed+i)
		for range 60 {
			m.Write(s)
			m.Ask(s)
		}
		m.AskAll(s)
	}
}

// calls makes requests of one trace with many spans each, every one of them called by one before it, of another service and request.
func calls(tb testing.TB, traces, spans int, start time.Time) []*otlpdata.Batch {
	tb.Helper()
	const services = 3
	var out []*otlpdata.Batch
	for service := range services {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", fmt.Sprint("service ", service))
		list := rs.ScopeSpans().AppendEmpty().Spans()
		for id := range traces * spans {
			n := id % spans
			if n%services != service {
				continue
			}
			s := list.AppendEmpty()
			s.SetTraceID(pcommon.TraceID{byte(id / spans), 1})
			s.SetSpanID(pcommon.SpanID{byte(n), byte(n >> 8), 1})
			if n > 0 {
				parent := (n - 1) / 2
				s.SetParentSpanID(pcommon.SpanID{byte(parent), byte(parent >> 8), 1})
			}
			s.SetStartTimestamp(pcommon.NewTimestampFromTime(start.Add(time.Duration(n) * 10 * time.Millisecond)))
			s.SetEndTimestamp(s.StartTimestamp() + 1000)
			s.Status().SetCode(ptrace.StatusCode(n % 3))
			s.Attributes().PutStr("peer.service", fmt.Sprint("peer ", n%5))
		}
		out = append(out, otlpdata.FromTraces(td, otlpdata.Meta{}))
	}
	return out
}

var someDay = time.Date(2026, 11, 21, 12, 0, 30, 0, time.UTC)

// segmentOf makes a segment of requests.
func (s callStore) segmentOf(tb testing.TB, batches ...*otlpdata.Batch) {
	tb.Helper()
	for _, b := range batches {
		if _, err := s.tables[0].Append(b, 0); err != nil {
			tb.Fatal(err)
		}
	}
	s.seal(0)
}

// checkWindows compares the answers for some windows, and returns whether all were complete.
func (s callStore) checkWindows(t *testing.T, sent []*otlpdata.Batch) {
	t.Helper()
	for _, w := range [][2]time.Duration{{-time.Hour, time.Hour}, {10 * time.Second, 20 * time.Second}, {time.Second, time.Hour},
		{0, 70 * time.Second}, {30 * time.Second, 30 * time.Second}, {30 * time.Second, 90*time.Second - 1}} {
		from, to := someDay.Add(w[0]), someDay.Add(w[1])
		want, err := storequery.CountCalls(from, to, sent...)
		if err != nil || len(want) == 0 {
			t.Fatalf("%v: %v, %v", w, want, err)
		}
		got, err := s.Dependencies(t.Context(), "", from, to)
		if err != nil || !got.Complete || !reflect.DeepEqual(got.Edges, want) {
			t.Errorf("%v: %+v, %v, want %+v", w, got, err, want)
		}
		s.checkPeers(t, from, to, sent...)
	}
}

// checkPeers compares the calls to peers with the reference.
func (s callStore) checkPeers(t *testing.T, from, to time.Time, sent ...*otlpdata.Batch) {
	t.Helper()
	want, err := storequery.CountPeers(from, to, sent...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Peers(t.Context(), "", from, to)
	if err != nil || !got.Complete || len(got.Edges)+len(want.Edges) > 0 && !reflect.DeepEqual(got.Edges, want.Edges) {
		t.Errorf("from %s to %s: calls to peers: %v\n got %+v\nwant %+v", from, to, err, got, want)
	}
}

// TestCallsOfCutTraces: traces that blocks are too small for, and parts of traces in every source.
func TestCallsOfCutTraces(t *testing.T) {
	const spans = 10_000
	sent := calls(t, 2, spans, someDay)
	together := newCallStore(t, 1, Options{})
	together.segmentOf(t, sent...)
	together.checkWindows(t, sent)
	if blocks, err := together.segments[0].Blocks(); err != nil || len(blocks) < 4 {
		t.Errorf("%d blocks, %v", len(blocks), err)
	}
	apart := newCallStore(t, 1, Options{})
	apart.segmentOf(t, sent[0])
	apart.segmentOf(t, sent[1])
	if _, err := apart.tables[0].Append(sent[2], 0); err != nil {
		t.Fatal(err)
	}
	apart.checkWindows(t, sent)
}

// flawed is a segment with a bad part. Only rows are worth an incomplete answer.
type flawed struct {
	*segment.Segment
	edges, orphans, index error
	dropped               uint64
}

func (f flawed) Edges() (*stats.EdgeStats, error) {
	e, err := f.Segment.Edges()
	if err == nil {
		copied := *e
		copied.Dropped, e = f.dropped, &copied
	}
	return e, errors.Join(err, f.edges)
}

func (f flawed) Orphans() (*stats.OrphanStats, error) {
	o, err := f.Segment.Orphans()
	return o, errors.Join(err, f.orphans)
}

func (f flawed) TraceBlocks(tenant string, ids []otlpdata.TraceID) ([]int, error) {
	if f.index != nil {
		return nil, f.index
	}
	return f.Segment.TraceBlocks(tenant, ids)
}

func TestCallsPastBadStatistics(t *testing.T) {
	bad := &source.DamageError{File: "file", Part: "part", Err: errors.New("rotten")}
	sent := calls(t, 20, 100, someDay.Add(29*time.Second))
	sent = append(sent, calls(t, 20, 100, someDay.Add(9*time.Second))...)
	for _, f := range []flawed{{edges: bad}, {orphans: bad}, {index: bad}, {dropped: 1}} {
		damage := 0
		s := newCallStore(t, 1, Options{OnDamage: func(*source.DamageError) { damage++ }})
		for i := range sent {
			s.segmentOf(t, sent[i])
			f.Segment = s.segments[i].(*segment.Segment)
			s.segments[i] = f
		}
		from, to := someDay.Add(-time.Hour), someDay.Add(time.Hour)
		want, err := storequery.CountCalls(from, to, sent...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Dependencies(t.Context(), "", from, to)
		if err != nil || !got.Complete || !reflect.DeepEqual(got.Edges, want) {
			t.Errorf("%+v: %+v, %v, want %+v", f, got, err, want)
		}
		s.checkPeers(t, from, to, sent...)
		if reported := f.edges != nil || f.orphans != nil; reported != (damage > 0) {
			t.Errorf("%+v: %d reports", f, damage)
		}
	}
}

// TestCallsOfDamagedRows: what cannot be read is missing, and the answer says so.
func TestCallsOfDamagedRows(t *testing.T) {
	s := openStore(2, 7, Options{})
	sent := calls(t, 20, 100, someDay)
	for _, b := range sent {
		if err := s.Consume(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	s.rot(3)
	got, err := s.Dependencies(t.Context(), "", time.Time{}, time.Time{})
	if err != nil || got.Complete || !strings.Contains(got.Reason, "cannot be read") || len(s.damage) == 0 {
		t.Errorf("%+v, %v, %d reports", got, err, len(s.damage))
	}
	if n := s.gauge.open.Load(); n != 0 {
		t.Errorf("%d blocks are still open", n)
	}
}

// TestLonelyOrphans: a search that would take too long is given up, and the answer says so.
func TestLonelyOrphans(t *testing.T) {
	s := newCallStore(t, 1, Options{})
	sent := calls(t, 10, 100, someDay)
	old := calls(t, 10, 100, someDay.Add(-time.Hour))
	s.segmentOf(t, sent[0])
	s.segmentOf(t, old...)
	for _, searched := range []int{0, maxSearched} {
		c := &callReader{session: s.begin(), to: ^uint64(0), searched: searched}
		for src := range c.sources {
			if sh, ok := c.shareOf(src); ok {
				if err := c.count(t.Context(), &sh); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := c.adopt(t.Context()); err != nil {
			t.Fatal(err)
		}
		if missing := strings.Contains(c.reason(), "not looked for everywhere"); missing != (searched > 0) {
			t.Errorf("after %d searches: %q", searched, c.reason())
		}
		c.lease.release()
	}
}

// TestSharesOfAMemtable: a memtable that is too large to be read at once.
func TestSharesOfAMemtable(t *testing.T) {
	s := newCallStore(t, 1, Options{})
	var sent []*otlpdata.Batch
	for i := range 20 {
		sent = append(sent, sharedIDs(uint64(i), 20))
		if _, err := s.tables[0].Append(sent[i], 0); err != nil {
			t.Fatal(err)
		}
	}
	want, err := storequery.CountCalls(time.Time{}, time.Time{}, sent...)
	if err != nil {
		t.Fatal(err)
	}
	src := s.tables[0].Source()
	tables, _ := src.Tables()
	blocks, _ := src.Blocks()
	for _, most := range []int{1, 7, 1000} {
		c := &callReader{session: New(func() View { return realView{src} }, Options{}).begin()}
		part := &callScan{callReader: c, tables: tables, blocks: blocks, window: window{{0, ^uint64(0)}}, apart: map[otlpdata.TraceID]struct{}{}}
		if err := errors.Join(part.pooled(t.Context(), most), part.wholeTraces(t.Context())); err != nil {
			t.Fatal(err)
		}
		if got := c.calls.Edges(); !reflect.DeepEqual(got, want) {
			t.Errorf("%d at once: %+v, want %+v", most, got, want)
		}
		c.lease.release()
	}
}

// sharedIDs makes a request of spans of few traces that share few ids, some of which stand for others. No two start together.
func sharedIDs(seed uint64, spans int) *otlpdata.Batch {
	rng := rand.New(rand.NewPCG(seed, 4))
	td := ptrace.NewTraces()
	for n := range spans {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", fmt.Sprint("service ", rng.IntN(4)))
		s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetTraceID(pcommon.TraceID{1, 9: 0xff, 15: byte(rng.IntN(5))})
		s.SetSpanID(pcommon.SpanID{byte(rng.IntN(10))})
		s.SetParentSpanID(pcommon.SpanID{byte(rng.IntN(10))})
		s.SetKind(ptrace.SpanKind(rng.IntN(6)))
		s.SetStartTimestamp(pcommon.NewTimestampFromTime(someDay.Add(time.Duration(rng.IntN(200_000))*time.Millisecond)) + pcommon.Timestamp(n))
		s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(rng.IntN(1000)))
		s.Status().SetCode(ptrace.StatusCode(rng.IntN(3)))
		if rng.IntN(3) == 0 {
			s.TraceState().FromRaw([]string{"ot=th:8", "a=b,ot=th:b333", fmt.Sprintf("ot=rv:f%013x;th:e666", n), "a=b", "ot=th:x"}[rng.IntN(5)])
		}
		if rng.IntN(3) > 0 {
			s.Attributes().PutStr("db.system", fmt.Sprint("base ", rng.IntN(3)))
		}
	}
	return otlpdata.FromTraces(td, otlpdata.Meta{})
}

// TestSharedIDs: within a source, statistics and rows follow the rules for spans that share an id as the reference does.
func TestSharedIDs(t *testing.T) {
	for seed := range uint64(30) {
		sent := sharedIDs(seed, 20+int(seed)*10) // so that large traces, too, are below storequery.MaxSameID
		live := newCallStore(t, seed, Options{})
		if _, err := live.tables[0].Append(sent, 0); err != nil {
			t.Fatal(err)
		}
		sealed := newCallStore(t, seed, Options{})
		sealed.segmentOf(t, sent)
		for _, w := range [][2]time.Duration{{-time.Hour, time.Hour}, {12 * time.Second, 150 * time.Second},
			{30 * time.Second, 32 * time.Second}} {
			from, to := someDay.Add(w[0]), someDay.Add(w[1])
			want, err := storequery.CountCalls(from, to, sent)
			if err != nil {
				t.Fatal(err)
			}
			for name, s := range map[string]callStore{"memtable": live, "segment": sealed} {
				got, err := s.Dependencies(t.Context(), "", from, to)
				if err != nil || !got.Complete || len(got.Edges)+len(want) > 0 && !reflect.DeepEqual(got.Edges, want) {
					t.Errorf("seed %d, %s, %v:\n got %+v, %v\nwant %+v", seed, name, w, got, err, want)
				}
				s.checkPeers(t, from, to, sent)
			}
		}
	}
}

// TestOwnParents: a span that is its own parent is no parent of its copy, and is one of another span that looks the same.
func TestOwnParents(t *testing.T) {
	one := func(id, parent byte) *otlpdata.Batch {
		td := ptrace.NewTraces()
		s := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetSpanID(pcommon.SpanID{id})
		s.SetParentSpanID(pcommon.SpanID{parent})
		s.SetStartTimestamp(pcommon.NewTimestampFromTime(someDay))
		return otlpdata.FromTraces(td, otlpdata.Meta{})
	}
	for child, want := range map[byte]int{1: 0, 2: 1} {
		s := newCallStore(t, 1, Options{})
		s.segmentOf(t, one(1, 1))
		s.segmentOf(t, one(child, 1))
		if _, err := s.tables[0].Append(one(3, 4), 0); err != nil {
			t.Fatal(err)
		}
		if g, err := s.Dependencies(t.Context(), "", time.Time{}, time.Time{}); err != nil || !g.Complete || len(g.Edges) != want {
			t.Errorf("span %d: %+v, %v, want %d edges", child, g, err, want)
		}
	}
}

// TestSentAgain pins down the one case that counts a span twice: it is in two sources.
func TestSentAgain(t *testing.T) {
	sent := calls(t, 1, 50, someDay)
	count := func(s callStore) (n uint64) {
		g, err := s.Dependencies(t.Context(), "", time.Time{}, time.Time{})
		if err != nil || !g.Complete {
			t.Fatalf("%+v, %v", g, err)
		}
		for _, e := range g.Edges {
			n += e.Calls
		}
		return n
	}
	within := newCallStore(t, 1, Options{})
	for range 3 {
		for _, b := range sent {
			if _, err := within.tables[0].Append(b, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := count(within); n != 49 {
		t.Errorf("%d calls of one memtable, want 49", n)
	}
	within.seal(0)
	if n := count(within); n != 49 {
		t.Errorf("%d calls of one segment, want 49", n)
	}
	within.segmentOf(t, sent...)
	if n := count(within); n != 98 {
		t.Errorf("%d calls of two segments, want 98", n)
	}
}
