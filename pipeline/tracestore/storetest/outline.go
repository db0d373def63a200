package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// checkOutlines sends random requests, some of them twice, and compares the outlines of all traces with their spans.
func checkOutlines(s *suite) {
	store, ok := s.store.(tracestore.Outliner)
	if !ok {
		s.Skip("the store is no tracestore.Outliner")
	}
	seed := randomSeed(s)
	g := generator{rand.New(rand.NewPCG(seed, 7))}
	var sent []*otlpdata.Batch
	for range 20 {
		b := s.encode(g.tenant(), g.request())
		s.sometimesAgain(&g, sent)
		s.consume(b)
		sent = append(sent, b)
	}
	for _, tenant := range tenants() {
		for id, spans := range s.sent.tenant(tenant).traces {
			s.checkOutline(store, tenant, id, spans)
		}
	}
	err := store.Outline(s.ctx, "", traceID(1<<40), 0, heldByNobody, func([]tracestore.SummarySpan) error { return errTaken })
	if err != nil {
		s.Errorf("an unknown trace has an outline: %v", err)
	}
	if s.Failed() {
		s.Fatalf("failed with %s=%d", seedVariable, seed)
	}
}

// errTaken is returned to a store that gives an outline.
var errTaken = errors.New("taken")

func heldByNobody(int, int) error { return nil }

func (s *suite) checkOutline(store tracestore.Outliner, tenant string, id otlpdata.TraceID, spans []tracestore.Span) {
	s.Helper()
	var got, want []string
	for _, sp := range spans {
		ns, _ := sp.Duration()
		want = append(want, fmt.Sprint(tracestore.SummarySpan{
			ID: sp.SpanID, Parent: sp.ParentID, Start: sp.Start, Duration: ns,
			Service: sp.Resource.Service, Name: sp.Operation(), Kind: sp.Kind, Failed: sp.StatusCode == otlpdata.StatusError,
		}))
	}
	held, names := 0, 0
	hold := func(spans, bytes int) error {
		held, names = spans, bytes
		return nil
	}
	err := store.Outline(s.ctx, tenant, id, 0, hold, func(outline []tracestore.SummarySpan) error {
		for _, sp := range outline {
			got = append(got, fmt.Sprint(sp))
			names -= len(sp.Name)
		}
		if held < len(outline) || names < 0 {
			s.Errorf("the outline of trace %s holds %d spans instead of %d, and %d bytes more of names", id, len(outline), held, -names)
		}
		return errTaken
	})
	if slices.Sort(got); err != errTaken || !slices.Equal(got, slices.Sorted(slices.Values(want))) { //nolint:errorlint // it must be this one
		s.Errorf("the outline of trace %s: %v\n got %v\nwant %v", id, err, got, want)
	}
	most := len(spans) - 1
	err = store.Outline(s.ctx, tenant, id, most, heldByNobody, func(outline []tracestore.SummarySpan) error {
		if most > 0 && len(outline) <= most {
			s.Errorf("the outline of trace %s has %d spans of %d", id, len(outline), len(spans))
		}
		return nil
	})
	if err != nil {
		s.Errorf("the outline of trace %s, cut: %v", id, err)
	}
	full := func(int, int) error { return errTaken }
	err = store.Outline(s.ctx, tenant, id, 0, full, func([]tracestore.SummarySpan) error { return nil })
	if !errors.Is(err, errTaken) {
		s.Errorf("the outline of trace %s for which there is no memory: %v", id, err)
	}
}
