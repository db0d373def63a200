package find

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

const rootTraces = 60

// rootedSpans returns a request of spans of few traces with and without roots, orphans, shared ids
// and extreme times.
func rootedSpans(rng *rand.Rand) ptrace.Traces {
	td := ptrace.NewTraces()
	for range 1 + rng.IntN(12) {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", string('a'+rune(rng.IntN(4))))
		s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetTraceID(pcommon.TraceID{15: byte(1 + rng.IntN(rootTraces))})
		s.SetSpanID(pcommon.SpanID{7: byte(1 + rng.IntN(9))})
		if rng.IntN(4) > 0 {
			s.SetParentSpanID(pcommon.SpanID{7: byte(1 + rng.IntN(9))})
		}
		s.SetName(string('a' + rune(rng.IntN(4))))
		s.SetStartTimestamp(pcommon.Timestamp(scantest.Start + rng.Uint64()>>(24+rng.IntN(40))))
		if rng.IntN(150) == 0 {
			s.SetStartTimestamp([]pcommon.Timestamp{0, 1, math.MaxUint64}[rng.IntN(3)])
		}
		s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(rng.Uint64()>>(24+rng.IntN(40))))
	}
	return td
}

// mergeOf returns a merge of sources.
func mergeOf(t *testing.T, sources []source.Source) source.Source {
	t.Helper()
	fs := vfstest.NewMem()
	if _, err := segment.Merge(fs, "s", sources, segment.Meta{}, segment.MergeOptions{}); err != nil {
		t.Fatal(err)
	}
	s, err := segment.Open(fs, "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// partKey identifies a part of a source.
type partKey struct {
	hash  uint64
	block int32
}

// spansOfParts reads the spans of all parts of a source from its blocks.
func spansOfParts(t *testing.T, src source.Source, oneBlock bool) map[partKey][]tracestore.SummarySpan {
	t.Helper()
	tables, err := src.Tables()
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := src.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	reader := newTraceReader(nil, "")
	out := make(map[partKey][]tracestore.SummarySpan)
	for i := range blocks {
		b, err := src.Open(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		for row := range b.Len() {
			var h rows.Head
			if err := b.Head(row, &h); err != nil {
				t.Fatal(err)
			}
			s, err := reader.summarySpan(tables, b, row)
			if err != nil {
				t.Fatal(err)
			}
			key := partKey{source.TraceHash(tables.Resources[h.Resource].Tenant, h.TraceID), int32(i)}
			if oneBlock {
				key.block = source.AnyBlock
			}
			out[key] = append(out[key], s)
		}
		b.Close()
	}
	return out
}

// listParts lists the parts of a source with random limits.
func listParts(t *testing.T, src source.Source, rng *rand.Rand) []source.TracePart {
	t.Helper()
	r, err := src.(source.TraceParts).TraceParts()
	if err != nil {
		t.Fatal(err)
	}
	var list []source.TracePart
	for limit := uint64(0); limit < 1<<source.TraceHashBits; {
		limit = min(1<<source.TraceHashBits, limit+rng.Uint64()>>(24+rng.IntN(8)))
		n := len(list)
		if list, err = r.Before(t.Context(), list, limit); err != nil {
			t.Fatal(err)
		}
		if n < len(list) && list[len(list)-1].Hash >= limit {
			t.Fatalf("part %+v is beyond the limit %d", list[len(list)-1], limit)
		}
	}
	if !slices.IsSortedFunc(list, func(a, b source.TracePart) int { return int(a.Hash>>8) - int(b.Hash>>8) }) {
		t.Error("parts are not sorted")
	}
	return list
}

// checkParts compares the parts of a source with its spans. It returns the number of exact parts
// with known roots.
func checkParts(t *testing.T, src source.Source, oneBlock bool, rng *rand.Rand) (known int) {
	t.Helper()
	want := spansOfParts(t, src, oneBlock)
	whole := make(map[uint64][]tracestore.SummarySpan)
	for key, spans := range want {
		whole[key.hash] = append(whole[key.hash], spans...)
	}
	tables, _ := src.Tables()
	list := listParts(t, src, rng)
	if len(list) != len(want) {
		t.Errorf("%d parts, want %d", len(list), len(want))
	}
	for _, p := range list {
		spans := slices.Clone(want[partKey{p.Hash, p.Block}])
		isWhole := len(spans) == len(whole[p.Hash])
		if len(spans) == 0 {
			t.Errorf("no rows belong to %+v", p)
			continue
		}
		sum := storequery.SummarizeSpans(otlpdata.TraceID{}, spans)
		if p.Bounds == source.Unbounded {
			noStart := slices.ContainsFunc(spans, func(s tracestore.SummarySpan) bool { return s.Start == 0 })
			if !noStart && sum.End < math.MaxUint64 {
				t.Errorf("part of spans from %d to %d is unbounded", sum.Start, sum.End)
			}
			continue
		}
		start, duration := sum.Start-p.Base, sum.End-sum.Start
		if start < p.Start.Begin() || start > p.Start.End() || duration < p.Duration.Begin() || duration > p.Duration.End() {
			t.Errorf("part %+v of spans from %d for %d ns", p, sum.Start, duration)
		}
		if shape, rootSpan, ok := p.Root.Shape(); ok && (rootSpan || isWhole) {
			known++
			s := &tables.Shapes[shape]
			if span := (otlpdata.Span{Name: s.Name}); s.Service != sum.RootService || span.Operation() != sum.RootName {
				t.Errorf("root is %s %s, want %s %s", s.Service, s.Name, sum.RootService, sum.RootName)
			}
		}
	}
	return known
}

// TestTraceParts compares the parts of memtables, flushed and merged segments with their rows.
func TestTraceParts(t *testing.T) {
	seed := soak.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 5))
	known := 0
	for range soak.Rounds(t, 6, 2) {
		s := scantest.NewReal(t, rng.Uint64())
		s.Distribute = rng.IntN(2) == 0
		for range 60 {
			scantest.Must(s.Consume(t.Context(), scantest.Encode(t, rootedSpans(rng))))
		}
		s.SegmentOf(t, scantest.CutTraces(t, 2, 9000, scantest.Day)...) // their spans do not fit into a block
		for _, table := range s.Tables {
			known += checkParts(t, table.Source(), true, rng)
		}
		for _, seg := range s.Segments {
			known += checkParts(t, seg, false, rng)
		}
		known += checkParts(t, mergeOf(t, s.Segments), false, rng)
	}
	if known < 100 {
		t.Errorf("%d known roots", known)
	}
}

// traceExpr returns a random condition on the trace.
func traceExpr(rng *rand.Rand, depth int) tracestore.Expr {
	part := func() tracestore.Expr { return traceExpr(rng, depth-1) }
	switch n := rng.IntN(10); {
	case depth == 0 || n < 5:
		c := tracestore.Cond{Field: tracestore.Field{Place: tracestore.TraceDuration}, Op: tracestore.Op(rng.IntN(int(tracestore.Like)))}
		c.Value = tracestore.Number(float64(rng.Uint64() >> (24 + rng.IntN(40))))
		if rng.IntN(2) == 0 {
			c.Field.Place = []tracestore.Place{tracestore.RootService, tracestore.RootName}[rng.IntN(2)]
			c.Value = tracestore.Text(string('a' + rune(rng.IntN(5))))
		}
		return c
	case n < 6:
		return tracestore.Not{Expr: part()}
	case n < 8:
		return tracestore.Or{part(), part()}
	}
	return tracestore.And{part(), part()}
}

// unboundedParts is a segment of an older version.
type unboundedParts struct{ source.Source }

func (u unboundedParts) TraceParts() (source.PartReader, error) {
	r, err := u.Source.(source.TraceParts).TraceParts()
	return unboundedReader{r}, err
}

type unboundedReader struct{ source.PartReader }

func (r unboundedReader) Before(ctx context.Context, dst []source.TracePart, limit uint64) ([]source.TracePart, error) {
	n := len(dst)
	dst, err := r.PartReader.Before(ctx, dst, limit)
	for i, p := range dst[n:] {
		dst[n+i] = source.TracePart{Hash: p.Hash, Block: p.Block}
	}
	return dst, err
}

// TestOfTrace checks that a search with a condition on the trace returns every trace for which it
// holds, in the same order as without the condition, and that it leaves out most of the others.
func TestOfTrace(t *testing.T) {
	seed := soak.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 6))
	returned, matching, all := 0, 0, 0
	for round := range soak.Rounds(t, 9, 3) {
		real := scantest.NewReal(t, rng.Uint64())
		real.Distribute = rng.IntN(2) == 0
		for range 60 {
			scantest.Must(real.Consume(t.Context(), scantest.Encode(t, rootedSpans(rng))))
		}
		view := real.View().Sources()
		upgraded := round%3 == 2 // some segments are of an older version
		for i, src := range real.Segments {
			if upgraded && rng.IntN(3) == 0 {
				view[i] = unboundedParts{src}
			}
		}
		if n := len(real.Segments); n > 2 && rng.IntN(2) == 0 {
			view = append(view[n/2:], mergeOf(t, real.Segments[:n/2]))
			if upgraded && rng.IntN(3) == 0 {
				view[len(view)-1] = unboundedParts{view[len(view)-1]}
			}
		}
		s := &store{nil, New(scan.NewStore(func() scan.View { return scantest.Sources(view) }, scan.Options{}))}
		for range 60 {
			q := tracestore.Query{Limit: rng.IntN(2) * 7}
			if rng.IntN(2) == 0 {
				q.Where = tracestore.Cond{Field: tracestore.Field{Place: tracestore.Name}, Value: tracestore.Text("a")}
			}
			if rng.IntN(4) == 0 {
				q.After = tracestore.Cursor{Start: scantest.Start + rng.Uint64()>>(24+rng.IntN(40)), ID: otlpdata.TraceID{1}, Set: true}
			}
			unlimited := q
			unlimited.Limit = 0
			plain, _ := s.ask(t, unlimited, tracestore.WantSummaries)
			q.OfTrace = traceExpr(rng, 3)
			got, outcome := s.ask(t, q, tracestore.WantSummaries)
			if !outcome.Complete() {
				t.Fatalf("%+v: incomplete: %s", q, outcome.Text())
			}
			var want, found []match
			for _, r := range plain {
				if tracestore.Match(q.OfTrace, tracestore.Span{Trace: r.Summary}) {
					want = append(want, match{r.Start, r.ID})
				}
			}
			for _, r := range got {
				if tracestore.Match(q.OfTrace, tracestore.Span{Trace: r.Summary}) {
					found = append(found, match{r.Start, r.ID})
				}
			}
			if !slices.Equal(found, want[:min(len(want), len(found))]) || q.Limit == 0 && len(found) != len(want) {
				t.Fatalf("%+v:\n got %v\nwant %v", q, found, want)
			}
			if q.Limit == 0 {
				returned, matching, all = returned+len(got), matching+len(want), all+len(plain)
			}
		}
	}
	if t.Logf("%d traces returned, %d match, of %d", returned, matching, all); returned > matching+(all-matching)*9/10 {
		t.Errorf("%d traces returned, %d match, of %d", returned, matching, all)
	}
}

// TestOfTraceSkipsBlocks checks that a search for the few long traces among many reads only their
// blocks. For segments of an older version, which have no bounds of traces, it checks only that
// hardly any other traces are returned.
func TestOfTraceSkipsBlocks(t *testing.T) {
	s := scantest.NewReal(t, 1)
	for part := range 4 {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", "a")
		spans := rs.ScopeSpans().AppendEmpty().Spans()
		for i := range 20_000 {
			sp := spans.AppendEmpty()
			n := part*20_000 + i
			sp.SetTraceID(pcommon.TraceID{1, byte(n >> 18), byte(n >> 10), byte(n >> 2)})
			sp.SetSpanID(pcommon.SpanID{1, byte(n)})
			sp.SetStartTimestamp(pcommon.Timestamp(scantest.Start + uint64(n)*1000))
			sp.SetEndTimestamp(sp.StartTimestamp() + 1000)
			if n == 31_000 {
				sp.SetEndTimestamp(sp.StartTimestamp() + 1_000_000)
			}
		}
		s.SegmentOf(t, scantest.Encode(t, td))
	}
	f := &store{nil, New(scan.NewStore(s.View, scan.Options{}))}
	long := tracestore.Cond{Field: tracestore.Field{Place: tracestore.TraceDuration}, Op: tracestore.Gt, Value: tracestore.Number(900_000)}
	got, outcome := f.ask(t, tracestore.Query{OfTrace: long}, tracestore.WantSummaries)
	isLong := func(r tracestore.Result) bool { return r.Summary.End-r.Summary.Start > 900_000 }
	if !slices.ContainsFunc(got, isLong) || !outcome.Complete() || len(got) > 100 || outcome.Scanned > 4*4096 {
		t.Errorf("%d results after %d spans, long one among them: %t; outcome %+v", len(got), outcome.Scanned,
			slices.ContainsFunc(got, isLong), outcome)
	}
	var old scantest.Sources
	for _, src := range s.Segments {
		old = append(old, unboundedParts{src})
	}
	f = &store{nil, New(scan.NewStore(func() scan.View { return old }, scan.Options{}))}
	got, outcome = f.ask(t, tracestore.Query{OfTrace: long}, tracestore.WantSummaries)
	const firstBlock = 1100 // traces; they were found before the search used their durations
	if !slices.ContainsFunc(got, isLong) || !outcome.Complete() || len(got) > firstBlock {
		t.Errorf("old segments: %d results, outcome %+v", len(got), outcome)
	}
}

// TestFilterTracesWithoutMemory checks that a search returns all traces if there is no memory to
// find out which ones meet the condition.
func TestFilterTracesWithoutMemory(t *testing.T) {
	s := scantest.NewReal(t, 1)
	scantest.Must(s.Consume(t.Context(), scantest.Encode(t, rootedSpans(rand.New(rand.NewPCG(1, 1))))))
	f := New(scan.NewStore(s.View, scan.Options{}))
	none := tracestore.Cond{Field: tracestore.Field{Place: tracestore.TraceDuration}, Op: tracestore.Lt, Value: tracestore.Number(0)}
	for _, limit := range []int64{4 << 20, 64 << 20} {
		account := &limitedAccount{left: limit}
		res, err := f.Find(tracestore.WithAccount(t.Context(), account), tracestore.Query{OfTrace: none}, tracestore.WantIDs)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, err := range res.All {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if filtered := limit > filterMemory; (n == 0) != filtered || !res.Outcome().Complete() || account.left != limit {
			t.Errorf("limit %d: %d results, %+v, %d bytes left", limit, n, res.Outcome(), account.left)
		}
	}
}

// limitedAccount is the memory of a query.
type limitedAccount struct{ left int64 }

func (a *limitedAccount) Grow(n int64) error {
	if n > a.left {
		return errors.New("out of memory")
	}
	a.left -= n
	return nil
}

func (a *limitedAccount) Shrink(n int64) { a.left += n }

// TestFilterTracesEnds checks that making the filter ends with the context.
func TestFilterTracesEnds(t *testing.T) {
	s := scantest.NewReal(t, 1)
	scantest.Must(s.Consume(t.Context(), scantest.Encode(t, rootedSpans(rand.New(rand.NewPCG(1, 1))))))
	ctx, cancel := context.WithCancel(t.Context())
	f := New(scan.NewStore(s.View, scan.Options{}))
	res, err := f.Find(ctx, tracestore.Query{OfTrace: traceExpr(rand.New(rand.NewPCG(1, 1)), 0)}, tracestore.WantIDs)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for _, err := range res.All {
		if err == nil {
			t.Error("result after the context ended")
		}
	}
}
