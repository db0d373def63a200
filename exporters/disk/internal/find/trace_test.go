package find

import (
	"context"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// TestLargeTraceInPieces checks that a trace that does not fit into memory comes in pieces, ordered
// by start, each span once.
func TestLargeTraceInPieces(t *testing.T) {
	const spans, pieceBytes = 8000, 8 << 10
	s := openStore(3, 1, scan.Options{PieceBytes: pieceBytes})
	b := scantest.WideTrace(t, spans)
	for range 2 { // every span twice
		scantest.Must(s.Consume(t.Context(), b))
	}
	v := scan.NewStore(s.View, scan.Options{PieceBytes: pieceBytes}).Begin()
	r := newTraceReader(v, "")
	seen := storequery.NewDedup()
	total, pieces := 0, 0
	var last uint64
	var counts []otlpdata.ServiceCount
	for piece, err := range r.pieces(t.Context(), otlpdata.TraceID{1}) {
		if err != nil {
			t.Fatal(err)
		}
		pieces++
		if piece.Size() > 2*pieceBytes {
			t.Errorf("piece %d has %d bytes", pieces, piece.Size())
		}
		if most := 3 * arenaPieces * pieceBytes; cap(r.own.arena)+cap(r.spare) > 2*most {
			t.Fatalf("arenas of %d and %d bytes", cap(r.own.arena), cap(r.spare))
		}
		first, latest := ^uint64(0), uint64(0)
		scantest.Must(tracestore.WalkSpans(piece, func(sp tracestore.Span) error {
			if !seen.First(sp) {
				t.Error("span returned twice")
			}
			first, latest = min(first, sp.Start), max(latest, sp.Start)
			total++
			return nil
		}))
		if first < last {
			t.Fatalf("piece %d begins at %d, before the end of the previous piece at %d", pieces, first, last)
		}
		last = latest
		counts = append(counts, piece.Services()...)
	}
	v.Release()
	if total != spans || pieces < 20 {
		t.Errorf("%d spans in %d pieces, want %d spans", total, pieces, spans)
	}
	byName := make(map[string]int)
	roots := 0
	for _, c := range counts {
		byName[c.Service] += c.Spans
		roots += c.Roots
	}
	if byName["service 0"] != spans/2 || byName["service 1"] != spans/2 || roots != 1 {
		t.Errorf("spans by service: %v, with %d root spans", byName, roots)
	}
}

// TestLongTraceIsNotReadWhole checks that a search reads little more of a long trace than its
// budget, and begins the next trace at its start.
func TestLongTraceIsNotReadWhole(t *testing.T) {
	s := openStore(3, 2, scan.Options{PieceBytes: 4 << 10})
	b := scantest.WideTrace(t, 1000)
	scantest.Must(s.Consume(t.Context(), b))
	for most, want := range map[int][2]int{0: {1000, 1000}, 1000: {1000, 1000}, 100: {101, 200}} {
		got, outcome := s.ask(t, tracestore.Query{Budget: tracestore.Budget{TraceSpans: most}}, tracestore.WantFull)
		if n := got[0].Spans.Len(); len(got) != 1 || !outcome.Complete() || n < want[0] || n > want[1] {
			t.Errorf("budget of %d spans: read %d spans of %d traces, outcome %+v", most, n, len(got), outcome)
		}
	}
}

// TestSummaryOfDuplicates checks that summaries count duplicates once, and both halves of a shared
// span.
func TestSummaryOfDuplicates(t *testing.T) {
	s := openStore(3, 2, scan.Options{PieceBytes: 4 << 10})
	b := scantest.WideTrace(t, 1000)
	for range 3 {
		scantest.Must(s.Consume(t.Context(), b))
	}
	want, err := storequery.Summarize(otlpdata.TraceID{1}, b)
	scantest.Must(err)
	got, outcome := s.ask(t, tracestore.Query{}, tracestore.WantSummaries)
	if len(got) != 1 || !outcome.Complete() || got[0].Summary.Spans != 1000 || got[0].Summary.RootName != want.RootName ||
		!slices.Equal(got[0].Summary.Services, want.Services) || got[0].Summary.Orphans != want.Orphans {
		t.Errorf("summary is %+v, outcome %+v, want %+v", got[0].Summary, outcome, want)
	}
}

// countingSource counts the blocks of a trace that are opened.
type countingSource struct {
	source.Source
	opened *int
}

func (s countingSource) TraceIn(ctx context.Context, tenant string, id otlpdata.TraceID, enter func(int) bool,
	visit func(source.Block, []int32) error) error {
	return s.Source.(source.SelectiveTrace).TraceIn(ctx, tenant, id, enter, func(b source.Block, list []int32) error {
		*s.opened++
		return visit(b, list)
	})
}

// A trace that takes many rounds is read in the order of time, so that its blocks are not all
// opened in each round.
func TestRoundsOpenFewBlocks(t *testing.T) {
	const spans, pieceBytes = 20_000, 8 << 10
	s := scantest.NewReal(t, 1)
	s.SegmentOf(t, scantest.WideTrace(t, spans))
	v := scan.NewStore(s.View, scan.Options{PieceBytes: pieceBytes}).Begin()
	defer v.Release()
	blocks, opened := 0, 0
	for i := range v.Sources {
		all, err := v.Sources[i].Blocks()
		scantest.Must(err)
		blocks += len(all)
		if _, ok := v.Sources[i].(source.SelectiveTrace); ok {
			v.Sources[i] = countingSource{v.Sources[i], &opened}
		}
	}
	total, pieces := 0, 0
	for piece, err := range newTraceReader(v, "").pieces(t.Context(), otlpdata.TraceID{1}) {
		scantest.Must(err)
		total, pieces = total+piece.Len(), pieces+1
	}
	if rounds := pieces / arenaPieces; total != spans || opened == 0 || opened > 3*rounds || rounds < 20 || blocks < 5 {
		t.Errorf("%d of %d spans, %d of %d blocks opened in at least %d rounds", total, spans, opened, blocks, rounds)
	}
}
