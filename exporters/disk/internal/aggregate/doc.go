// Package aggregate counts spans: heatmaps, facets, groups and exemplars of the spans that match a
// query, and metrics of services and operations over time.
//
//	aggregate.go              Aggregator, aggregation: one call of Aggregate
//	heatmap.go                heatmaps from statistics
//	sample.go                 the blocks to read if the budget does not suffice for all
//	spread.go                 the error of estimates from these blocks
//	rowscan.go, duplicates.go counting of rows that match
//	facets.go, facetvalues.go counting of the values of fields
//	groups.go, groupshape.go  counting by values of fields, and of numbers
//	blockrange.go             counts of ranges of blocks, which are kept
//	countcache.go             the cache that keeps them
//	exemplars.go              choice of exemplars
//	metrics.go                Metrics: counts from statistics
//	metricscan.go             counts from rows
//	metricduplicates.go       duplicates among these rows
//
// Whole minutes are counted from the statistics of segments and memtables if these distinguish
// spans as the query does. Everything else is counted from rows.
//
// If the blocks have more rows than the budget allows, Aggregate reads a sample: every n-th block,
// so that the counts are in proportion. Values of fields are counted by their codes and become
// texts once per source. Values that the rows of a shape (similar spans) or of a resource have in
// common are counted once for all of them. If all rows of a block match, its cells are counted
// column by column.
package aggregate
