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
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// What is returned in spite of damage is right, and an answer that may lack something says so.
func TestDamage(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
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
		if outcome.Complete != (len(s.Damage) == 0) || outcome.Complete == (outcome.Reason != "") {
			t.Fatalf("%d damaged parts, %+v", len(s.Damage), outcome)
		}
		if outcome.Complete && !slices.Equal(matches(got), want) {
			t.Fatalf("%+v: says complete\n got %v\nwant %v", q, matches(got), want)
		}
		checkSound(w, t, q, got)
		seen := make(map[string]bool)
		for _, d := range s.Damage {
			if seen[d.File+d.Part] {
				t.Fatalf("%v was reported twice", d)
			}
			seen[d.File+d.Part] = true
		}
		if !outcome.Complete {
			incomplete++
		}
	}
	if incomplete == 0 {
		t.Error("no query met damage")
	}
	if n := s.Blocks.Open.Load(); n != 0 {
		t.Errorf("%d blocks are still open", n)
	}
}

// checkSound checks that results are spans that exist and match.
func checkSound(w *scantest.Generator, t *testing.T, q tracestore.Query, got []tracestore.Result) {
	t.Helper()
	for _, r := range got {
		if !slices.ContainsFunc(w.Spans, func(s tracestore.Span) bool {
			return s.TraceID == r.ID && s.Start == r.Start && tracestore.Match(q.Where, s)
		}) {
			t.Fatalf("%+v: trace %s does not match at %d", q, r.ID, r.Start)
		}
		if r.Spans != nil && r.Spans.Len() > countSpans(w, r.ID) || r.Summary != nil && r.Summary.Spans > countSpans(w, r.ID) {
			t.Fatalf("trace %s has more spans than it has", r.ID)
		}
	}
}

// count returns the number of spans of a trace, duplicates counted once.
func countSpans(w *scantest.Generator, id otlpdata.TraceID) (n int) {
	d := storequery.NewDedup()
	for _, s := range w.Spans {
		if s.TraceID == id && d.First(s) {
			n++
		}
	}
	return n
}

// A damaged trace comes as far as it can be read, and an error after it.
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
				t.Fatal("the sequence goes on after an error")
			}
			if last = err; err == nil {
				n += tr.Spans.Len()
			}
		}
		var d *source.DamageError
		switch all := countSpans(w, sp.TraceID); {
		case n > all || last == nil && n != all:
			t.Errorf("trace %s: %d spans, want %d", sp.TraceID, n, all)
		case last != nil && !errors.As(last, &d):
			t.Errorf("trace %s: %v", sp.TraceID, last)
		case last != nil && n > 0:
			failed++
		}
	}
	if failed == 0 {
		t.Error("no trace was read in part")
	}
}
