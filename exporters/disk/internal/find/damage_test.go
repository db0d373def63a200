package find

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// TestDamage checks that results are correct in spite of damage, and that a result says if it may
// be incomplete.
func TestDamage(t *testing.T) {
	seed := soak.Seed(t)
	w := &scantest.Generator{Rand: rand.New(rand.NewPCG(seed, 5))}
	s := openStore(3, seed, scan.Options{})
	w.Send(t, s, 60)
	incomplete := 0
	for i := range 150 {
		s.Rot([]int{2, 10, 60}[i%3])
		s.Damage = nil
		q := w.Query()
		q.Limit = w.IntN(10)
		want := expect(w, q)
		got, outcome := s.ask(t, q, tracestore.Want(i%3))
		if outcome.Complete() != (len(s.Damage) == 0) || outcome.Complete() == (outcome.Text() != "") {
			t.Fatalf("%d reports of damage, but outcome is %+v", len(s.Damage), outcome)
		}
		if outcome.Complete() && !slices.Equal(matches(got), want) {
			t.Fatalf("%+v: outcome is complete\n got %v\nwant %v", q, matches(got), want)
		}
		checkSound(w, t, q, got)
		seen := make(map[string]bool)
		for _, d := range s.Damage {
			if seen[d.File+d.Part] {
				t.Fatalf("damage reported twice: %v", d)
			}
			seen[d.File+d.Part] = true
		}
		if !outcome.Complete() {
			incomplete++
		}
	}
	if incomplete == 0 {
		t.Error("no query found damage")
	}
	if n := s.Blocks.Open.Load(); n != 0 {
		t.Errorf("%d blocks left open", n)
	}
}

// checkSound checks that each result is a trace with a matching span.
func checkSound(w *scantest.Generator, t *testing.T, q tracestore.Query, got []tracestore.Result) {
	t.Helper()
	for _, r := range got {
		if !slices.ContainsFunc(w.Spans, func(s tracestore.Span) bool {
			return s.TraceID == r.ID && s.Start == r.Start && tracestore.Match(q.Where, s)
		}) {
			t.Fatalf("%+v: trace %s has no matching span that starts at %d", q, r.ID, r.Start)
		}
		if r.Spans != nil && r.Spans.Len() > countSpans(w, r.ID) || r.Summary != nil && r.Summary.Spans > countSpans(w, r.ID) {
			t.Fatalf("result for trace %s has more spans than the trace", r.ID)
		}
	}
}

// countSpans returns the number of spans of a trace. Duplicates count once.
func countSpans(w *scantest.Generator, id otlpdata.TraceID) (n int) {
	d := storequery.NewDedup()
	for _, s := range w.Spans {
		if s.TraceID == id && d.First(s) {
			n++
		}
	}
	return n
}

// TestDamagedTrace checks that the readable part of a damaged trace is returned, followed by an
// error.
func TestDamagedTrace(t *testing.T) {
	w := &scantest.Generator{Rand: rand.New(rand.NewPCG(6, 6))}
	s := openStore(2, 6, scan.Options{})
	w.Send(t, s, 60)
	s.Rot(3)
	failed := 0
	for _, sp := range w.Spans[:50] {
		n := 0
		var last error
		for tr, err := range s.Traces(t.Context(), "", []tracestore.TraceRef{{ID: sp.TraceID}}) {
			if last != nil {
				t.Fatal("Traces went on after an error")
			}
			if last = err; err == nil {
				n += tr.Spans.Len()
			}
		}
		var d *source.DamageError
		var damaged *tracestore.DamagedError
		if last != nil && (!errors.As(last, &damaged) || damaged.Text() == "") {
			t.Errorf("trace %s: error is %v, want a DamagedError with a reason", sp.TraceID, last)
		}
		outlined := 0
		err := s.Outline(t.Context(), "", sp.TraceID, 0, func(int, int) error { return nil }, func(list []tracestore.SummarySpan) error {
			outlined = len(list)
			return nil
		})
		if err != nil && !errors.As(err, &damaged) || last == nil && (err != nil || outlined != n) || outlined < n {
			t.Errorf("trace %s: outline has %d spans and error %v; the trace has %d and %v", sp.TraceID, outlined, err, n, last)
		}
		switch all := countSpans(w, sp.TraceID); {
		case n > all || last == nil && n != all:
			t.Errorf("trace %s: %d spans, want %d", sp.TraceID, n, all)
		case last != nil && !errors.As(last, &d):
			t.Errorf("trace %s: error is %v, want a DamageError", sp.TraceID, last)
		case last != nil && n > 0:
			failed++
		}
	}
	if failed == 0 {
		t.Error("no damaged trace was read in part")
	}
	p, err := s.ProfilePaths(t.Context(), tracestore.Query{}, tracestore.Selection{}, tracestore.PathOptions{})
	if err != nil || p.Complete() || p.Text() == "" || p.Selected.Traces == 0 {
		t.Errorf("path profile: error %v, complete %t, reason %q, %d traces", err, p.Complete(), p.Text(), p.Selected.Traces)
	}
}
