package find

import (
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
)

// store is a synthetic store and the Finder under test.
type store struct {
	*scantest.Synthetic
	*Finder
}

func openStore(tables int, seed uint64, o scan.Options) *store {
	s := scantest.NewSynthetic(tables, seed)
	return &store{s, New(scan.NewStore(s.View, s.Collect(o)))}
}
