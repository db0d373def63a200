package search

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// rot damages every n-th block.
func (s *store) rot(n int) {
	for _, t := range s.tables {
		for _, b := range t.blocks {
			b.rot.Store(sound)
			if s.rng.IntN(n) == 0 {
				b.rot.Store(int32(1 + s.rng.IntN(rottenCells)))
			}
		}
	}
}

// What is returned in spite of damage is right, and an answer that may lack something says so.
func TestDamage(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	w := &world{Rand: rand.New(rand.NewPCG(seed, 5))}
	s := openStore(3, seed, Options{})
	w.send(t, s, 60)
	incomplete := 0
	for i := range 150 {
		s.rot([]int{2, 10, 60}[i%3])
		s.damage = nil
		q := w.query()
		q.Limit = w.IntN(10)
		want := w.expect(q)
		got, outcome := s.ask(t, q, tracestore.Want(i%3))
		if outcome.Complete != (len(s.damage) == 0) || outcome.Complete == (outcome.Reason != "") {
			t.Fatalf("%d damaged parts, %+v", len(s.damage), outcome)
		}
		if outcome.Complete && !slices.Equal(matches(got), want) {
			t.Fatalf("%+v: says complete\n got %v\nwant %v", q, matches(got), want)
		}
		w.checkSound(t, q, got)
		seen := make(map[string]bool)
		for _, d := range s.damage {
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
	if n := s.gauge.open.Load(); n != 0 {
		t.Errorf("%d blocks are still open", n)
	}
}

// checkSound checks that results are spans that exist and match.
func (w *world) checkSound(t *testing.T, q tracestore.Query, got []tracestore.Result) {
	t.Helper()
	for _, r := range got {
		if !slices.ContainsFunc(w.spans, func(s tracestore.Span) bool {
			return s.TraceID == r.ID && s.Start == r.Start && tracestore.Match(q.Where, s)
		}) {
			t.Fatalf("%+v: trace %s does not match at %d", q, r.ID, r.Start)
		}
		if r.Spans != nil && r.Spans.Len() > w.count(r.ID) || r.Summary != nil && r.Summary.Spans > w.count(r.ID) {
			t.Fatalf("trace %s has more spans than it has", r.ID)
		}
	}
}

// count returns the number of spans of a trace, duplicates counted once.
func (w *world) count(id otlpdata.TraceID) (n int) {
	d := storequery.NewDedup()
	for _, s := range w.spans {
		if s.TraceID == id && d.First(s) {
			n++
		}
	}
	return n
}

// A damaged trace comes as far as it can be read, and an error after it.
func TestDamagedTrace(t *testing.T) {
	w := &world{Rand: rand.New(rand.NewPCG(6, 6))}
	s := openStore(2, 6, Options{})
	w.send(t, s, 60)
	s.rot(3)
	failed := 0
	for _, sp := range w.spans[:50] {
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
		switch all := w.count(sp.TraceID); {
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

func TestDamageReason(t *testing.T) {
	table := newTable("segment 3", 1, new(gauge))
	src := &testSource{table: table}
	var reported []*source.DamageError
	d := damage{report: func(e *source.DamageError) { reported = append(reported, e) }}
	other := errors.New("the disk is gone")
	joined := errors.Join(&source.DamageError{File: "seg/a", Part: "block 1", Rows: 10, Err: other},
		errors.Join(&source.DamageError{File: "seg/b", Part: "block 2", Err: other}, other))
	if err := d.note(src, "block 2", 5, joined); !errors.Is(err, other) || errors.As(err, new(*source.DamageError)) {
		t.Errorf("what is no damage: %v", err)
	}
	if err := d.note(src, "block 7", 3, errReference); err != nil {
		t.Errorf("a corrupt row: %v", err)
	}
	if err := d.note(src, "block 2", 5, &source.DamageError{File: "seg/a", Part: "block 1", Rows: 10, Err: other}); err != nil {
		t.Errorf("known damage: %v", err)
	}
	if len(reported) != 3 || !errors.Is(reported[2], rows.ErrCorrupt) || reported[2].File != "segment 3" {
		t.Errorf("reported: %v", reported)
	}
	if got := d.reason(); !strings.Contains(got, "18 spans") || !strings.Contains(got, "seg/a, seg/b, segment 3") {
		t.Errorf("reason: %q", got)
	}
}
