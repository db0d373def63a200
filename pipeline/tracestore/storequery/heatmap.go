package storequery

import "github.com/tracing-backend/tracing/pipeline/tracestore"

// HeatmapCounter counts spans by start and duration. It uses memory only for columns that have
// spans: at most tracestore.MaxColumns columns of 8 KiB. It is not safe for concurrent use.
type HeatmapCounter struct {
	step, first uint64 // first is the number of the first column
	columns     []heatColumn
}

type heatColumn struct{ all, failed tracestore.Histogram }

// NewHeatmapCounter returns a HeatmapCounter for the window of a query. The step must be above 0
// and valid according to Aggregation.Check.
func NewHeatmapCounter(q tracestore.Query, h tracestore.HeatmapQuery) *HeatmapCounter {
	c := &HeatmapCounter{step: uint64(h.Step)}
	if from, to, ok := q.Window(); ok {
		c.first = from / c.step
		c.columns = make([]heatColumn, to/c.step-c.first+1)
	}
	return c
}

// AddSpan counts a span. It must start within the window.
func (c *HeatmapCounter) AddSpan(start, duration uint64, failed bool) {
	errors := uint64(0)
	if failed {
		errors = 1
	}
	c.AddSpans(start, tracestore.HeatBucketOf(duration), 1, errors)
}

// AddSpans counts at least one span in the column of a start, which must be within the window, and
// a bucket of durations; see tracestore.HeatBucketOf.
func (c *HeatmapCounter) AddSpans(start uint64, bucket int, spans, errors uint64) {
	column := &c.columns[start/c.step-c.first]
	column.all.AddBucket(bucket, spans)
	if errors > 0 {
		column.failed.AddBucket(bucket, errors)
	}
}

// Merge adds the counts of another counter of the same query.
func (c *HeatmapCounter) Merge(o *HeatmapCounter) {
	for i := range o.columns {
		c.columns[i].all.Add(&o.columns[i].all)
		c.columns[i].failed.Add(&o.columns[i].failed)
	}
}

// Answer returns the heatmap for the examined share of the spans; see Heatmap.Share.
func (c *HeatmapCounter) Answer(share float64) *tracestore.Heatmap {
	out := &tracestore.Heatmap{Step: c.step, Share: share}
	for i := range c.columns {
		out.Cells = c.columns[i].cells(out.Cells, (c.first+uint64(i))*c.step)
	}
	return out
}

func (c *heatColumn) cells(dst []tracestore.HeatCell, start uint64) []tracestore.HeatCell {
	first, counts := c.all.Counts()
	firstFailed, failed := c.failed.Counts()
	for i, n := range counts {
		if n == 0 {
			continue
		}
		cell := tracestore.HeatCell{Start: start, Bucket: first + i, Count: n}
		if j := cell.Bucket - firstFailed; j >= 0 && j < len(failed) {
			cell.Errors = failed[j]
		}
		dst = append(dst, cell)
	}
	return dst
}
