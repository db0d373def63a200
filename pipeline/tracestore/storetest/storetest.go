// Package storetest is the conformance suite for span stores. It checks the guarantees of package
// tracestore against an oracle that holds all spans sent and evaluates queries with
// tracestore.Match.
//
//	func TestStore(t *testing.T) {
//		storetest.Store(t, func(tb testing.TB) storetest.Subject { return openStore(tb) })
//	}
//
// Some checks send random spans and run random queries. They log their seed; TRACING_SEED=n repeats
// a run.
package storetest

import (
	"context"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Subject is a store under test. The optional interfaces of package tracestore that it implements
// are tested too. Spans that Consume has accepted must be visible to the next read.
type Subject interface {
	Consume(ctx context.Context, b *otlpdata.Batch) error
	tracestore.Reader
	tracestore.Catalog
}

// Several is implemented by a Subject that divides samples among several stores. Each store
// estimates numbers from its own small part of a sample, so larger errors are allowed.
type Several interface {
	Stores() int
}

// Store runs the suite. open is called once for each check. It returns an empty store with a
// capacity of at least 50,000 small spans, and closes it with tb.Cleanup. In `make race`, it leaves
// out large checks.
func Store(t *testing.T, open func(tb testing.TB) Subject) {
	list := checks()
	if soak.Raced() {
		list = smallChecks()
	}
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) { c.run(newSuite(t, open(t))) })
	}
}

// Variant runs parts of the suite for another configuration of a store that Store already tests:
// only the named checks, whose outcome may differ. In `make soak` it runs the whole suite.
func Variant(t *testing.T, open func(tb testing.TB) Subject, differing ...string) {
	if soak.Soaking() {
		Store(t, open)
		return
	}
	Checks(t, open, differing...)
}

// PassiveStore runs the suite on a store without goroutines of its own. In `make race` it runs only
// the concurrent checks.
func PassiveStore(t *testing.T, open func(tb testing.TB) Subject) {
	if soak.Raced() {
		Checks(t, open, concurrent...)
		return
	}
	Store(t, open)
}

// concurrent are the checks that write and read, or cancel, at the same time.
var concurrent = []string{"canceled queries", "early stop and writes while reading", "concurrent writers and readers"}

// Checks runs the named checks of the suite, for stores for which the whole suite takes too long.
// In `make race` it runs only the concurrent ones among them.
func Checks(t *testing.T, open func(tb testing.TB) Subject, names ...string) {
	left := slices.Clone(names)
	for _, c := range checks() {
		if i := slices.Index(left, c.name); i >= 0 {
			left = slices.Delete(left, i, i+1)
			if soak.Raced() && !slices.Contains(concurrent, c.name) {
				continue
			}
			t.Run(c.name, func(t *testing.T) { c.run(newSuite(t, open(t))) })
		}
	}
	if len(left) > 0 {
		t.Errorf("unknown checks %q", left)
	}
}

// LossyStore runs the suite on a store that does not preserve all of OTLP. convert returns the
// request without the content that the store does not preserve; the suite sends this request and
// expects it back. The checks named in skip, which depend on what is lost, do not run.
func LossyStore(
	t *testing.T, open func(tb testing.TB) Subject, convert func(testing.TB, *otlpdata.Batch) *otlpdata.Batch, skip ...string,
) {
	for _, name := range skip {
		if !slices.ContainsFunc(checks(), func(c check) bool { return c.name == name }) {
			t.Errorf("unknown check %q", name)
		}
	}
	for _, c := range checks() {
		if slices.Contains(skip, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			s := newSuite(t, open(t))
			s.convert = convert
			c.run(s)
		})
	}
}

// check tests one guarantee.
type check struct {
	name string
	run  func(s *suite)
}

func checks() []check { return append(largeChecks(), smallChecks()...) }

// largeChecks have many spans. With the race detector, they take as long as all others together,
// which race the same code.
func largeChecks() []check {
	return []check{
		{"a trace of 10,000 spans", checkLargeTrace},
		{"span sets on long traces", checkLongSets},
		{"span sets with few matches", checkRareSets},
		{"facet limits and samples", checkManyValues},
		{"samples of path profiles", checkSampledPaths},
	}
}

func smallChecks() []check {
	return []check{
		{"all span fields are returned", checkContent},
		{"64-bit, 128-bit and zero ids", checkIDs},
		{"duplicates are returned once", checkDuplicates},
		{"different spans with the same id are kept", checkSharedIDs},
		{"late spans join their trace", checkLateSpans},
		{"unicode and invalid UTF-8", checkStrings},
		{"missing and invalid service names", checkServiceNames},
		{"tenants are isolated", checkTenants},
		{"several and unknown trace ids", checkRefs},
		{"order and limit", checkOrder},
		{"all conditions hold on one span", checkOneSpan},
		{"windows include both bounds", checkWindows},
		{"minimum and maximum times", checkExtremeTimes},
		{"pages list each trace once", checkPages},
		{"pages of traces with several matches", checkPagesOfWideTraces},
		{"an exhausted budget is reported", checkBudget},
		{"ids, summaries and full traces", checkWants},
		{"canceled queries", checkCancel},
		{"queries that end within long values", checkLongValues},
		{"early stop and writes while reading", checkEarlyStop},
		{"concurrent writers and readers", checkConcurrency},
		{"catalog", checkCatalog},
		{"attribute catalog", checkAttributeCatalog},
		{"span sets", checkSets},
		{"windows, pages and budgets of span sets", checkSetBounds},
		{"canceled and stopped span sets", checkSetEnds},
		{"random span sets", checkRandomSets},
		{"calls between services", checkDependencies},
		{"random calls", checkRandomCalls},
		{"rates, errors and durations", checkMetrics},
		{"random rates, errors and durations", checkRandomMetrics},
		{"durations of operations", checkBaselines},
		{"heatmaps, facets and exemplars", checkAggregates},
		{"groups", checkGroups},
		{"random aggregates", checkRandomAggregates},
		{"attributes with several names", checkNames},
		{"arrays", checkArrays},
		{"counts of sampled spans", checkSampled},
		{"feeds", checkFollow},
		{"outlines", checkOutlines},
		{"single spans of traces", checkSelectedSpans},
		{"critical paths and call paths", checkPathProfiles},
		{"random path profiles", checkRandomPathProfiles},
		{"usage", checkUsage},
		{"versions of traces", checkVersions},
		{"spans found in traces", checkFoundSpans},
		{"deletions", checkDelete},
		{"random deletions", checkRandomDeletes},
		{"random spans and queries", checkRandom},
	}
}
