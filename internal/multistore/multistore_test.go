package multistore

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storetest"
)

// TestStore runs the conformance suite on several stores, among which traces are distributed.
func TestStore(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("%d stores", n), func(t *testing.T) {
			open := func(tb testing.TB) storetest.Subject { return newShop(tb, n, byTrace(n, 1)) }
			if n == 2 {
				storetest.Store(t, open)
				return
			}
			storetest.Variant(t, open, append([]string{"random span sets", "random calls", "random rates, errors and durations",
				"random aggregates", "random path profiles", "random deletions"}, searches...)...)
		})
	}
}

// searches are the checks of the suite that do not count spans in ways that depend on where they
// are stored.
var searches = []string{
	"all span fields are returned", "64-bit, 128-bit and zero ids", "duplicates are returned once",
	"different spans with the same id are kept", "late spans join their trace", "a trace of 10,000 spans",
	"unicode and invalid UTF-8", "missing and invalid service names", "tenants are isolated", "several and unknown trace ids",
	"order and limit", "all conditions hold on one span", "windows include both bounds", "minimum and maximum times",
	"pages list each trace once", "pages of traces with several matches", "an exhausted budget is reported",
	"ids, summaries and full traces", "canceled queries", "queries that end within long values", "early stop and writes while reading",
	"concurrent writers and readers", "catalog", "attribute catalog", "random spans and queries",
}

// TestDuplicates runs the checks on stores that each have a copy of another one.
func TestDuplicates(t *testing.T) {
	storetest.Checks(t, func(tb testing.TB) storetest.Subject { return newShop(tb, 3, byTrace(3, 2)) },
		append([]string{"span sets", "windows, pages and budgets of span sets", "random span sets"}, searches...)...)
}

// withoutCalls is a store that cannot count calls: a parent in another store is not known.
type withoutCalls struct{ *shop }

func (w withoutCalls) Provide(ctx context.Context, tenant string, want reflect.Type) any {
	if want == reflect.TypeFor[tracestore.Edges]() {
		return nil
	}
	return w.shop.Provide(ctx, tenant, want)
}

// TestDividedTraces runs the checks on stores among which the spans of each trace are divided.
func TestDividedTraces(t *testing.T) {
	storetest.Checks(t, func(tb testing.TB) storetest.Subject { return withoutCalls{newShop(tb, 2, byRequest(2))} },
		append([]string{"versions of traces", "deletions"}, searches...)...)
}
