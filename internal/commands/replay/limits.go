package replay

import (
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/exporters/clickhouse"
	"github.com/tracing-backend/tracing/exporters/disk"
	"github.com/tracing-backend/tracing/pipeline/app"
)

// limitsOf returns warnings about stores whose counts include spans twice if spans of the given age
// are stored a second time.
func limitsOf(c *app.Config, age time.Duration) (limits []string) {
	for _, component := range c.Sorted() {
		id := component.Key.ID.String()
		switch store := component.Value.(type) {
		case *disk.Config:
			if window := store.Memtable.MaxAge.Std(); age > window {
				limits = append(limits, fmt.Sprintf("exporters.%s recognizes repeated spans in counts for memtable.max_age (%s): traces and searches "+
					"show each span once, but call rates, heatmaps, facets, groups and the service graph count older ones twice", id, window))
			}
		case *clickhouse.Config:
			limits = append(limits, fmt.Sprintf("exporters.%s recognizes repeated inserts, the last %d (dedup_window), but a replay joins records "+
				"to other inserts: traces and searches show each span once, but statistics count it twice", id, store.DedupWindow))
		}
	}
	return limits
}
