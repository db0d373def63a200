package source

import (
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Statistics is implemented by sources that were counted when they were written, and never change. They hold no duplicates, and in each of
// their blocks the rows of a trace follow each other. They are comparable, and what they say is kept while they are in a view.
type Statistics interface {
	// Series returns the spans by service and operation. An error is a *DamageError, as it is of the next two.
	Series() (*stats.SeriesStats, error)
	// Edges returns the calls whose parent is in the source, too.
	Edges() (*stats.EdgeStats, error)
	// Orphans returns the spans whose parent is not in the source.
	Orphans() (*stats.OrphanStats, error)
	// TraceBlocks returns the numbers, ascending, of the blocks that may have rows of some traces of a tenant: of all blocks that have
	// some, and a few others. An error says that this is not known; then it may be any block.
	TraceBlocks(tenant string, ids []otlpdata.TraceID) ([]int, error)
}
