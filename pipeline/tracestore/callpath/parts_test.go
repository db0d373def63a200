package callpath

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// partStore has traces of one span. Every fifth trace failed. FindParts finds the traces of all
// parts; searches find nothing.
type partStore struct {
	fakeStore

	starts []uint64 // of traces, ascending
	asked  int      // calls of FindParts
	blind  bool     // FindParts ignores without
}

func (p *partStore) span(i int) tracestore.SummarySpan {
	return tracestore.SummarySpan{ID: otlpdata.SpanID{1}, Start: p.starts[i], Duration: 100, Service: "web", Name: "GET /", Failed: i%5 == 0}
}

func idOf(i int) otlpdata.TraceID { return otlpdata.TraceID{1, 13: byte(i >> 8), 14: byte(i)} }

func (p *partStore) EachHeads(
	_ context.Context, _ string, ids []otlpdata.TraceID, _ int, take func(otlpdata.TraceID, []tracestore.SummarySpan) error,
) error {
	for _, id := range ids {
		if err := take(id, []tracestore.SummarySpan{p.span(int(id[13])<<8 | int(id[14]))}); err != nil {
			return err
		}
	}
	return nil
}

func (p *partStore) FindParts(
	_ context.Context, q tracestore.Query, without *tracestore.Query, starts []uint64, limit int,
) (*FoundParts, error) {
	p.asked++
	out := &FoundParts{Traces: make([][]tracestore.Cursor, len(starts))}
	for i, start := range slices.Backward(p.starts) {
		head := p.span(i)
		s := spanOf(&head, nil)
		if !tracestore.Match(q.Where, s) || without != nil && !p.blind && tracestore.Match(without.Where, s) {
			continue
		}
		part, same := slices.BinarySearch(starts, start)
		if !same {
			part--
		}
		if of := &out.Traces[part]; len(*of) < limit {
			*of = append(*of, tracestore.Cursor{Start: start, ID: idOf(i), Set: true})
		}
	}
	return out, nil
}

func failed() tracestore.Expr {
	return tracestore.Cond{Field: tracestore.Field{Place: tracestore.Status}, Op: tracestore.Eq, Value: tracestore.Text("error")}
}

// TestFoundParts checks samples whose traces are found in one call. A sample has the wanted number
// of traces, spread over the part of the window that has traces, and needs few calls.
func TestFoundParts(t *testing.T) {
	const traces, want, window = 6000, 640, 1 << 40
	for _, c := range []struct {
		name   string
		length uint64 // of the time at the end of the window that has traces
		blind  bool
		asked  int
	}{
		{"even", window, false, 2},
		{"selected traces are not left out", window, true, 2},
		{"in one part", window / 64, false, 6},
		{"in two parts", window / 32, false, 6},
	} {
		s := &partStore{blind: c.blind}
		for i := range uint64(traces) {
			s.starts = append(s.starts, begin+window-c.length+i*(c.length/traces))
		}
		q := tracestore.Query{From: storequery.TimeOf(begin), To: storequery.TimeOf(begin + window)}
		p, err := Profile(t.Context(), s, q, tracestore.Selection{Where: failed()}, tracestore.PathOptions{Traces: want})
		if err != nil || !p.Complete() || p.Selected.Traces != want || p.Selected.Failed != want || p.Rest.Traces != want || p.Rest.Failed != 0 {
			t.Errorf("%s: error %v, %d and %d traces, of which %d and %d failed, %v", c.name, err, p.Selected.Traces, p.Rest.Traces,
				p.Selected.Failed, p.Rest.Failed, p.Reasons)
		}
		if s.asked > c.asked {
			t.Errorf("%s: %d calls to find traces, want at most %d", c.name, s.asked, c.asked)
		}
		for set, all := range map[*tracestore.PathSet]float64{&p.Selected: traces / 5, &p.Rest: traces / 5 * 4} {
			if estimate := float64(set.Traces) / set.Share; math.Abs(estimate-all) > all/10 {
				t.Errorf("%s: estimated %.0f of %.0f traces", c.name, estimate, all)
			}
			var halves [2]int
			for _, id := range set.IDs {
				halves[(int(id[13])<<8|int(id[14]))*2/traces]++
			}
			if c.name != "in one part" && (halves[0] < want/3 || halves[1] < want/3) {
				t.Errorf("%s: %d and %d traces of each half", c.name, halves[0], halves[1])
			}
		}
	}
}
