package names

import (
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
)

// store is a synthetic store and the Catalog under test.
type store struct {
	*scantest.Synthetic
	*Catalog
}

// realStore is a store of memtables and segments and the Catalog under test.
type realStore struct {
	*scantest.Real
	*Catalog
}

func newRealStore(tb testing.TB, seed uint64, o scan.Options) realStore {
	tb.Helper()
	s := scantest.NewReal(tb, seed)
	return realStore{s, New(scan.NewStore(s.View, o))}
}
