package source

import (
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Statistics is implemented by sources that were counted when they were written, and never change. They hold no duplicates, and in each of
// their blocks the rows of a trace follow each other.
type Statistics interface {
	// Edges returns the calls whose parent is in the source, too. An error is a *DamageError, as it is of the next one.
	Edges() (*stats.EdgeStats, error)
	// Orphans returns the spans whose parent is not in the source.
	Orphans() (*stats.OrphanStats, error)
	// TraceBlocks returns the numbers, ascending, of the blocks that may have rows of some traces of a tenant: of all blocks that have
	// some, and a few others. An error says that this is not known; then it may be any block.
	TraceBlocks(tenant string, ids []otlpdata.TraceID) ([]int, error)
}
