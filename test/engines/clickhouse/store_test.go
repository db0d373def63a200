package clickhouse_test

import (
	"testing"

	"github.com/tracing-backend/tracing/pipeline/tracestore/storetest"
)

// TestStore checks the store with the conformance suite, or with some quick checks of it.
func TestStore(t *testing.T) {
	open := func(tb testing.TB) storetest.Subject { return open(tb).(storetest.Subject) }
	if testing.Short() {
		storetest.Checks(t, open, "all span fields are returned", "duplicates are returned once", "late spans join their trace",
			"tenants are isolated", "order and limit", "minimum and maximum times", "pages of traces with several matches",
			"ids, summaries and full traces", "outlines", "feeds")
		return
	}
	storetest.Store(t, open)
}
