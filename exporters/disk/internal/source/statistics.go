package source

import (
	"context"

	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Statistics is implemented by sources with statistics that were written together with the rows.
// Such a source is comparable, never changes, and has no duplicates; in each of its blocks, the
// rows of a trace are adjacent. Results may be kept while the source is part of a view.
type Statistics interface {
	// Series returns the spans by service and operation. Errors of Series, Edges and Orphans are
	// *DamageError.
	Series() (*stats.SeriesStats, error)
	// Edges returns the calls whose parent is in the source.
	Edges() (*stats.EdgeStats, error)
	// Orphans returns the spans whose parent is not in the source.
	Orphans() (*stats.OrphanStats, error)
	Clusters
}

// Clusters is implemented by sources that have no duplicates and in which the rows of a trace are
// adjacent in each block.
type Clusters interface {
	// TraceBlocks returns the numbers, in ascending order, of the blocks that may have rows of some
	// traces of a tenant: all blocks that have some, and a few others. After an error, any block
	// may have some.
	TraceBlocks(tenant string, ids []otlpdata.TraceID) ([]int, error)
}

// Clustered is implemented by sources that hide rows of another source, which may implement
// Clusters.
type Clustered interface {
	// Clusters returns nil if the source may have duplicates, or rows of a trace in any order.
	Clusters() Clusters
}

// ClustersOf returns the Clusters of a source, or nil.
func ClustersOf(s Source) Clusters {
	switch s := s.(type) {
	case Clusters:
		return s
	case Clustered:
		return s.Clusters()
	}
	return nil
}

// Tally is implemented by sources that still grow and count their rows on demand.
type Tally interface {
	// Tally calls look with the counts of the rows, without duplicates, and the range of their
	// start times, both inclusive. The counts are complete and must not be modified. They may
	// include rows that are newer than the source. Tally returns false without calling look if the
	// counts are unknown and the rows must be read.
	Tally(ctx context.Context, look func(c *stats.Collector, oldest, newest uint64)) (bool, error)
}
