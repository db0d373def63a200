package graph

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// checkWindows compares the answers for some windows with the definition.
func (s realStore) checkWindows(t *testing.T, sent []*otlpdata.Batch) {
	t.Helper()
	for _, w := range [][2]time.Duration{{-time.Hour, time.Hour}, {10 * time.Second, 20 * time.Second}, {time.Second, time.Hour},
		{0, 70 * time.Second}, {30 * time.Second, 30 * time.Second}, {30 * time.Second, 90*time.Second - 1}} {
		from, to := scantest.Day.Add(w[0]), scantest.Day.Add(w[1])
		want, err := storequery.CountCalls(from, to, sent...)
		if err != nil || len(want) == 0 {
			t.Fatalf("window %v: expected edges are %v, error %v", w, want, err)
		}
		got, err := s.Dependencies(t.Context(), "", from, to)
		if err != nil || !got.Complete() || !reflect.DeepEqual(got.Edges, want) {
			t.Errorf("window %v: got %+v, %v, want %+v", w, got, err, want)
		}
		s.checkPeers(t, from, to, sent...)
	}
}

// checkPeers compares the calls to peers with the definition.
func (s realStore) checkPeers(t *testing.T, from, to time.Time, sent ...*otlpdata.Batch) {
	t.Helper()
	want, err := storequery.CountPeers(from, to, sent...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Peers(t.Context(), "", from, to)
	if err != nil || !got.Complete() || len(got.Edges)+len(want.Edges) > 0 && !reflect.DeepEqual(got.Edges, want.Edges) {
		t.Errorf("from %s to %s: calls to peers: %v\n got %+v\nwant %+v", from, to, err, got, want)
	}
}

// TestCallsOfCutTraces counts traces that are larger than blocks and traces with spans in every
// source.
func TestCallsOfCutTraces(t *testing.T) {
	const spans = 10_000
	sent := scantest.CutTraces(t, 2, spans, scantest.Day)
	together := newRealStore(t, 1, scan.Options{})
	together.SegmentOf(t, sent...)
	together.checkWindows(t, sent)
	if blocks, err := together.Segments[0].Blocks(); err != nil || len(blocks) < 4 {
		t.Errorf("segment has %d blocks, error %v", len(blocks), err)
	}
	apart := newRealStore(t, 1, scan.Options{})
	apart.SegmentOf(t, sent[0])
	apart.SegmentOf(t, sent[1])
	if _, err := apart.Tables[0].Append(sent[2], 0); err != nil {
		t.Fatal(err)
	}
	apart.checkWindows(t, sent)
}

// flawed is a segment with damaged or incomplete statistics. Rows still give a complete result.
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
	sent := scantest.CutTraces(t, 20, 100, scantest.Day.Add(29*time.Second))
	sent = append(sent, scantest.CutTraces(t, 20, 100, scantest.Day.Add(9*time.Second))...)
	for _, f := range []flawed{{edges: bad}, {orphans: bad}, {index: bad}, {dropped: 1}} {
		damage := 0
		s := newRealStore(t, 1, scan.Options{OnDamage: func(*source.DamageError) { damage++ }})
		for i := range sent {
			s.SegmentOf(t, sent[i])
			f.Segment = s.Segments[i].(*segment.Segment)
			s.Segments[i] = f
		}
		from, to := scantest.Day.Add(-time.Hour), scantest.Day.Add(time.Hour)
		want, err := storequery.CountCalls(from, to, sent...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Dependencies(t.Context(), "", from, to)
		if err != nil || !got.Complete() || !reflect.DeepEqual(got.Edges, want) {
			t.Errorf("%+v: got %+v, %v, want %+v", f, got, err, want)
		}
		s.checkPeers(t, from, to, sent...)
		if reported := f.edges != nil || f.orphans != nil; reported != (damage > 0) {
			t.Errorf("%+v: %d reports of damage", f, damage)
		}
	}
}

// TestCallsOfDamagedRows checks that unreadable rows are missing and that the result says so.
func TestCallsOfDamagedRows(t *testing.T) {
	s := openStore(2, 7, scan.Options{})
	sent := scantest.CutTraces(t, 20, 100, scantest.Day)
	for _, b := range sent {
		if err := s.Consume(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	s.Rot(3)
	got, err := s.Dependencies(t.Context(), "", time.Time{}, time.Time{})
	if err != nil || got.Complete() || !strings.Contains(got.Text(), "cannot be read") || len(s.Damage) == 0 {
		t.Errorf("got %+v, %v, %d reports of damage", got, err, len(s.Damage))
	}
	if n := s.Blocks.Open.Load(); n != 0 {
		t.Errorf("%d blocks left open", n)
	}
}

// TestFarLookupsAreLimited checks that a search for parents that takes too long is stopped and that
// the result says so.
func TestFarLookupsAreLimited(t *testing.T) {
	s := newRealStore(t, 1, scan.Options{})
	sent := scantest.CutTraces(t, 10, 100, scantest.Day)
	old := scantest.CutTraces(t, 10, 100, scantest.Day.Add(-time.Hour))
	s.SegmentOf(t, sent[0])
	s.SegmentOf(t, old...)
	for _, searched := range []int{0, maxFarLookups} {
		c := &callReader{session: scan.NewStore(s.View, scan.Options{}).Begin(), to: ^uint64(0), farLookups: searched}
		for src := range c.session.Sources {
			if sh, ok := c.shareOf(src); ok {
				if err := c.count(t.Context(), &sh); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := c.resolveParents(t.Context()); err != nil {
			t.Fatal(err)
		}
		if missing := c.reasons().Has(tracestore.ReasonLimit); missing != (searched > 0) {
			t.Errorf("after %d far lookups: reasons are %+v", searched, c.reasons())
		}
		c.session.Release()
	}
}

// TestPartsOfMemtable counts calls of a memtable that is read in several parts.
func TestPartsOfMemtable(t *testing.T) {
	s := newRealStore(t, 1, scan.Options{})
	var sent []*otlpdata.Batch
	for i := range 20 {
		sent = append(sent, scantest.SharedIDs(uint64(i), 20))
		if _, err := s.Tables[0].Append(sent[i], 0); err != nil {
			t.Fatal(err)
		}
	}
	want, err := storequery.CountCalls(time.Time{}, time.Time{}, sent...)
	if err != nil {
		t.Fatal(err)
	}
	src := s.Tables[0].Source()
	tables, _ := src.Tables()
	blocks, _ := src.Blocks()
	for _, most := range []int{1, 7, 1000} {
		c := &callReader{session: scan.NewStore(func() scan.View { return scantest.Sources{src} }, scan.Options{}).Begin()}
		part := &callScan{session: c.session, reader: c, tables: tables, blocks: blocks,
			window: scan.Window{{From: 0, To: ^uint64(0)}}, cutTraces: map[otlpdata.TraceID]struct{}{}}
		if err := errors.Join(part.countPooled(t.Context(), most), part.countWholeTraces(t.Context())); err != nil {
			t.Fatal(err)
		}
		if got := c.calls.Edges(); !reflect.DeepEqual(got, want) {
			t.Errorf("%d rows at once: got %+v, want %+v", most, got, want)
		}
		c.session.Release()
	}
}

// TestSharedIDs checks that statistics and rows follow the same rules as the definition for spans
// that share an id.
func TestSharedIDs(t *testing.T) {
	for seed := range uint64(30) {
		// Large traces, too, have fewer than storequery.MaxSameID spans with the same id.
		sent := scantest.SharedIDs(seed, 20+int(seed)*10)
		live := newRealStore(t, seed, scan.Options{})
		if _, err := live.Tables[0].Append(sent, 0); err != nil {
			t.Fatal(err)
		}
		sealed := newRealStore(t, seed, scan.Options{})
		sealed.SegmentOf(t, sent)
		for _, w := range [][2]time.Duration{{-time.Hour, time.Hour}, {12 * time.Second, 150 * time.Second},
			{30 * time.Second, 32 * time.Second}} {
			from, to := scantest.Day.Add(w[0]), scantest.Day.Add(w[1])
			want, err := storequery.CountCalls(from, to, sent)
			if err != nil {
				t.Fatal(err)
			}
			for name, s := range map[string]realStore{"memtable": live, "segment": sealed} {
				got, err := s.Dependencies(t.Context(), "", from, to)
				if err != nil || !got.Complete() || len(got.Edges)+len(want) > 0 && !reflect.DeepEqual(got.Edges, want) {
					t.Errorf("seed %d, %s, %v:\n got %+v, %v\nwant %+v", seed, name, w, got, err, want)
				}
				s.checkPeers(t, from, to, sent)
			}
		}
	}
}

// TestOwnParents checks that a span that is its own parent is not the parent of its copy, but can
// be the parent of another span with equal fields.
func TestOwnParents(t *testing.T) {
	one := func(id, parent byte) *otlpdata.Batch {
		td := ptrace.NewTraces()
		s := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetSpanID(pcommon.SpanID{id})
		s.SetParentSpanID(pcommon.SpanID{parent})
		s.SetStartTimestamp(pcommon.NewTimestampFromTime(scantest.Day))
		return otlpdata.FromTraces(td, otlpdata.Meta{})
	}
	for child, want := range map[byte]int{1: 0, 2: 1} {
		s := newRealStore(t, 1, scan.Options{})
		s.SegmentOf(t, one(1, 1))
		s.SegmentOf(t, one(child, 1))
		if _, err := s.Tables[0].Append(one(3, 4), 0); err != nil {
			t.Fatal(err)
		}
		if g, err := s.Dependencies(t.Context(), "", time.Time{}, time.Time{}); err != nil || !g.Complete() || len(g.Edges) != want {
			t.Errorf("span %d: got %+v, %v, want %d edges", child, g, err, want)
		}
	}
}

// TestSentAgain checks the only case in which a span is counted twice: when it is in two sources.
func TestSentAgain(t *testing.T) {
	sent := scantest.CutTraces(t, 1, 50, scantest.Day)
	count := func(s realStore) (n uint64) {
		g, err := s.Dependencies(t.Context(), "", time.Time{}, time.Time{})
		if err != nil || !g.Complete() {
			t.Fatalf("Dependencies returned %+v, %v", g, err)
		}
		for _, e := range g.Edges {
			n += e.Calls
		}
		return n
	}
	within := newRealStore(t, 1, scan.Options{})
	for range 3 {
		for _, b := range sent {
			if _, err := within.Tables[0].Append(b, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := count(within); n != 49 {
		t.Errorf("%d calls in one memtable, want 49", n)
	}
	within.Seal(0)
	if n := count(within); n != 49 {
		t.Errorf("%d calls in one segment, want 49", n)
	}
	within.SegmentOf(t, sent...)
	if n := count(within); n != 98 {
		t.Errorf("%d calls in two segments, want 98", n)
	}
}
