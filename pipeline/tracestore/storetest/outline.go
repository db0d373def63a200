package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// checkOutlines sends random requests, some of them twice, and compares the outline of each trace
// with its spans.
func checkOutlines(s *suite) {
	store, ok := optional[tracestore.Outliner](s, s.store)
	if !ok {
		s.Skip("store does not implement tracestore.Outliner")
	}
	seed := randomSeed(s)
	g := generator{rand.New(rand.NewPCG(seed, 7))}
	var sent []*otlpdata.Batch
	for range 20 {
		b := s.encode(g.tenant(), g.request())
		s.maybeResend(&g, sent)
		s.consume(b)
		sent = append(sent, b)
	}
	for _, tenant := range tenants() {
		for id, spans := range s.sent.tenant(tenant).traces {
			s.checkOutline(store, tenant, id, spans)
		}
	}
	err := store.Outline(s.ctx, "", traceID(1<<40), 0, ignoreHold, func([]tracestore.SummarySpan) error { return errTaken })
	if err != nil {
		s.Errorf("outline of an unknown trace: %v", err)
	}
	if s.Failed() {
		s.Fatalf("failed with %s=%d", seedVariable, seed)
	}
}

// errTaken is returned to the store by callbacks.
var errTaken = errors.New("taken")

func ignoreHold(int, int) error { return nil }

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
	held, nameBytes := 0, 0
	hold := func(spans, bytes int) error {
		held, nameBytes = spans, bytes
		return nil
	}
	err := store.Outline(s.ctx, tenant, id, 0, hold, func(outline []tracestore.SummarySpan) error {
		for _, sp := range outline {
			got = append(got, fmt.Sprint(sp))
			nameBytes -= len(sp.Name)
		}
		if held < len(outline) || nameBytes < 0 {
			s.Errorf("outline of trace %s: hold got %d spans, want at least %d; bytes of names not reported: %d",
				id, held, len(outline), -nameBytes)
		}
		return errTaken
	})
	slices.Sort(got)
	slices.Sort(want)
	if err != errTaken || !slices.Equal(got, want) { //nolint:errorlint // must be this error, not wrapped
		s.Errorf("outline of trace %s: error %v\n got %v\nwant %v", id, err, got, want)
	}
	limit := len(spans) - 1
	err = store.Outline(s.ctx, tenant, id, limit, ignoreHold, func(outline []tracestore.SummarySpan) error {
		if limit > 0 && len(outline) <= limit {
			s.Errorf("outline of trace %s with limit %d: %d of %d spans", id, limit, len(outline), len(spans))
		}
		return nil
	})
	if err != nil {
		s.Errorf("outline of trace %s with a limit: %v", id, err)
	}
	full := func(int, int) error { return errTaken }
	err = store.Outline(s.ctx, tenant, id, 0, full, func([]tracestore.SummarySpan) error { return nil })
	if !errors.Is(err, errTaken) {
		s.Errorf("outline of trace %s: error %v, want that of hold", id, err)
	}
}
