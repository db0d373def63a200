package source

import (
	"context"

	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
)

// Tally is implemented by sources that still grow, and count their rows for who asks.
type Tally interface {
	// Tally calls look with what is known of the rows, without duplicates, and bounds of their starts, both inclusive. The Collector is
	// complete and must not be changed; there may be rows in it that are newer than the source. It is false, and look not called, where
	// that is not known, and rows have to be read one by one.
	Tally(ctx context.Context, look func(c *stats.Collector, oldest, newest uint64)) (bool, error)
}
