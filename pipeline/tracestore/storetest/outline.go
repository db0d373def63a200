package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// checkOutlines sends random requests, some of them twice, and compares the outline of each trace
// with its spans.
func checkOutlines(s *suite) {
	seed := randomSeed(s)
	g := generator{rand.New(rand.NewPCG(seed, 7))}
	s.sendRandom(&g, 20)
	for _, tenant := range tenants() {
		for id, spans := range s.sent.tenant(tenant).traces {
			s.checkOutline(tenant, id, spans)
		}
	}
	err := s.store.Outline(s.ctx, "", traceID(1<<40), 0, ignoreHold, func([]tracestore.SummarySpan) error { return errTaken })
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

func (s *suite) checkOutline(tenant string, id otlpdata.TraceID, spans []tracestore.Span) {
	s.Helper()
	var want []tracestore.SummarySpan
	var hosts storequery.Hosts
	for _, sp := range spans {
		want = append(want, hosts.OutlineSpan(sp))
	}
	var got []string
	held, textBytes := 0, 0
	hold := func(spans, bytes int) error {
		held, textBytes = spans, bytes
		return nil
	}
	err := s.store.Outline(s.ctx, tenant, id, 0, hold, func(outline []tracestore.SummarySpan) error {
		got = describeOutline(outline)
		for i := range outline {
			textBytes -= len(outline[i].Name) + outline[i].Extras.Size()
		}
		if held < len(outline) || textBytes < 0 {
			s.Errorf("outline of trace %s: hold got %d spans, want at least %d; bytes of texts not reported: %d",
				id, held, len(outline), -textBytes)
		}
		return errTaken
	})
	described := describeOutline(want)
	if err != errTaken || !slices.Equal(got, described) { //nolint:errorlint // must be this error, not wrapped
		s.Errorf("outline of trace %s: error %v\n got %v\nwant %v", id, err, got, described)
	}
	limit := len(spans) - 1
	err = s.store.Outline(s.ctx, tenant, id, limit, ignoreHold, func(outline []tracestore.SummarySpan) error {
		if limit > 0 && len(outline) <= limit {
			s.Errorf("outline of trace %s with limit %d: %d of %d spans", id, limit, len(outline), len(spans))
		}
		return nil
	})
	if err != nil {
		s.Errorf("outline of trace %s with a limit: %v", id, err)
	}
	full := func(int, int) error { return errTaken }
	err = s.store.Outline(s.ctx, tenant, id, 0, full, func([]tracestore.SummarySpan) error { return nil })
	if !errors.Is(err, errTaken) {
		s.Errorf("outline of trace %s: error %v, want the error of hold", id, err)
	}
}

// describeOutline returns the sorted descriptions of spans. It identifies a host by the first
// description of its spans, because each store numbers hosts differently.
func describeOutline(spans []tracestore.SummarySpan) []string {
	out, hosts := make([]string, len(spans)), make(map[uint32]string)
	for i, sp := range spans {
		if sp.Extras != nil {
			out[i] = fmt.Sprintf("%+v ", *sp.Extras)
		}
		host := sp.Host
		sp.Host, sp.Extras = 0, nil
		out[i] += fmt.Sprintf("%+v", sp)
		if first, known := hosts[host]; !known || out[i] < first {
			hosts[host] = out[i]
		}
	}
	hosts[0] = "unknown"
	for i := range spans {
		out[i] += " host: " + hosts[spans[i].Host]
	}
	slices.Sort(out)
	return out
}
