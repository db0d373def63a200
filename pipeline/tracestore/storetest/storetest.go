// Package storetest is the suite that every span store must pass: the promises of package tracestore, checked against an oracle that
// remembers everything sent and answers with tracestore.Match.
//
//	func TestStore(t *testing.T) {
//		storetest.Store(t, func(tb testing.TB) storetest.Subject { return openStore(tb) })
//	}
//
// The last check sends random spans and asks random questions. It logs its seed; STORETEST_SEED=n repeats a run.
package storetest

import (
	"context"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Subject is a store under test. Where it is a tracestore.AttributeCatalog, tracestore.Dependencies, tracestore.Metrics or
// tracestore.Aggregator as well, that is tested too. What Consume took without an error must be seen by the next read.
type Subject interface {
	Consume(ctx context.Context, b *otlpdata.Batch) error
	tracestore.Reader
	tracestore.Catalog
}

// Store runs the suite. open returns an empty store, and is called once for every check; it closes the store with tb.Cleanup. The store
// must have room for 50,000 small spans.
func Store(t *testing.T, open func(tb testing.TB) Subject) {
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) { c.run(newSuite(t, open(t))) })
	}
}

// StoreOf runs the suite on a store that cannot keep all that OTLP says: it is sent what as makes of each request, which it must keep. Checks of
// what as takes away are left out by their names.
func StoreOf(t *testing.T, open func(tb testing.TB) Subject, as func(testing.TB, *otlpdata.Batch) *otlpdata.Batch, without ...string) {
	for _, c := range checks() {
		if slices.Contains(without, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			s := newSuite(t, open(t))
			s.as = as
			c.run(s)
		})
	}
}

// check is one promise.
type check struct {
	name string
	run  func(s *suite)
}

func checks() []check {
	return []check{
		{"everything in a span comes back", checkContent},
		{"ids of 64 and 128 bits and zero ids", checkIDs},
		{"duplicates are shown once", checkDuplicates},
		{"spans that share an id and differ both stay", checkSharedIDs},
		{"a trace grows by late spans", checkLateSpans},
		{"a trace of 10,000 spans", checkLargeTrace},
		{"unicode and invalid UTF-8", checkStrings},
		{"services without a proper name", checkServiceNames},
		{"tenants are apart", checkTenants},
		{"several, repeated and unknown ids", checkRefs},
		{"newest first, ties by id, limit last", checkOrder},
		{"all conditions hold on one span", checkOneSpan},
		{"windows include both bounds", checkWindows},
		{"least and greatest times", checkExtremeTimes},
		{"pages list each trace once", checkPages},
		{"pages and traces with several matches", checkPagesOfWideTraces},
		{"a budget is never silent", checkBudget},
		{"ids, summaries and full traces", checkWants},
		{"the context ends a query", checkCancel},
		{"the caller may stop early, and write while it reads", checkEarlyStop},
		{"writers and readers at once", checkConcurrency},
		{"catalog", checkCatalog},
		{"attribute catalog", checkAttributeCatalog},
		{"span sets", checkSets},
		{"windows, pages and budgets of span sets", checkSetBounds},
		{"span sets of long traces", checkLongSets},
		{"span sets that are rarely found", checkRareSets},
		{"the context and the caller end a span set", checkSetEnds},
		{"random span sets", checkRandomSets},
		{"calls between services", checkDependencies},
		{"random calls", checkRandomCalls},
		{"rates, errors and durations", checkMetrics},
		{"random rates, errors and durations", checkRandomMetrics},
		{"heatmaps, facets and exemplars", checkAggregates},
		{"more fields and values than are counted", checkManyValues},
		{"random aggregates", checkRandomAggregates},
		{"spans as they are stored", checkFollow},
		{"outlines have all spans", checkOutlines},
		{"deleted spans are gone, later ones stay", checkDelete},
		{"random deletions", checkRandomDeletes},
		{"random spans and queries", checkRandom},
	}
}
