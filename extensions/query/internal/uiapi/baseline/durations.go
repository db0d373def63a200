package baseline

import (
	"fmt"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// maxOperations is the maximum number of operations of a trace whose durations are counted.
// Operations with the most spans come first.
const maxOperations = 2000

// durationsAnswer is the data of GET /api/ui/v1/baseline/{id}: the durations of the operations of a
// trace. Operations without calls are omitted.
type durationsAnswer struct {
	Start      route.Nanos      `json:"start"`
	End        route.Nanos      `json:"end"` // exclusive
	Operations operationColumns `json:"operations"`
}

// operationColumns has one value for each operation in each list, and one digit in Kind.
type operationColumns struct {
	Service []string `json:"service"`
	Name    []string `json:"name"`
	Kind    string   `json:"kind"` // OTLP numbers
	Calls   []uint64 `json:"calls"`
	P50     []int64  `json:"p50"`
	P95     []int64  `json:"p95"`
	P99     []int64  `json:"p99"`
	// Bucket is the first bucket with calls, and Counts are the calls in this bucket and the
	// following ones. Bucket b begins at 2^(b/8) ns.
	Bucket []int      `json:"bucket"`
	Counts [][]uint64 `json:"counts"`
}

// durations serves GET /api/ui/v1/baseline/{id}.
func (a *API) durations(slot *core.Slot, t *trace) (any, tracestore.Reasons, error) {
	store, ok := core.SlotAs[tracestore.Metrics](slot)
	if !ok {
		return nil, nil, tracestore.ErrUnsupported
	}
	times, err := a.quietTimes(slot, t)
	if err != nil {
		return nil, nil, err
	}
	operations := t.operations()
	omitted := max(0, len(operations)-maxOperations)
	operations = operations[:len(operations)-omitted]
	answer := &durationsAnswer{Operations: newColumns()}
	rest, err := answer.count(slot, store, t, operations, times)
	if err != nil {
		return nil, nil, err
	}
	if len(rest) > 0 { // they are new, or there is too little quiet time
		all := []core.Window{a.window(t)}
		without, err := answer.count(slot, store, t, rest, all)
		if err != nil {
			return nil, nil, err
		}
		if len(without) < len(rest) || len(times) == 0 {
			times = all
		}
	}
	if omitted > 0 {
		t.incomplete.Add(tracestore.Reason{Kind: tracestore.ReasonLimit,
			Text: fmt.Sprintf("%d operations with fewer spans are left out (limit is %d)", omitted, maxOperations)})
	}
	answer.Start, answer.End = route.NanosOf(times[0].From), route.NanosOf(times[len(times)-1].To.Add(1))
	return answer, t.incomplete, nil
}

// count adds the durations of operations in the given times. It returns the operations without
// calls.
func (a *durationsAnswer) count(
	slot *core.Slot, store tracestore.Metrics, t *trace, operations []tracestore.OperationKey, times []core.Window,
) (without []tracestore.OperationKey, _ error) {
	durations, err := readDurations(slot, store, t, operations, times)
	for i := range durations {
		if durations[i].Count() == 0 {
			without = append(without, operations[i])
			continue
		}
		a.Operations.add(operations[i], &durations[i])
	}
	return without, err
}

// readDurations returns the durations of each operation in the given times.
func readDurations(
	slot *core.Slot, store tracestore.Metrics, t *trace, operations []tracestore.OperationKey, times []core.Window,
) ([]tracestore.Histogram, error) {
	durations := make([]tracestore.Histogram, len(operations))
	for _, w := range times {
		got, err := store.Baselines(slot.Context(), slot.Tenant(), tracestore.BaselineQuery{Operations: operations, From: w.From, To: w.To})
		if err != nil {
			return nil, err
		}
		t.incomplete.Add(got.Reasons...)
		for i := range durations {
			durations[i].Add(&got.Durations[i])
		}
	}
	return durations, nil
}

// newColumns returns empty lists, which are not null in JSON.
func newColumns() operationColumns {
	return operationColumns{Service: []string{}, Name: []string{}, Calls: []uint64{}, P50: []int64{}, P95: []int64{}, P99: []int64{},
		Bucket: []int{}, Counts: [][]uint64{}}
}

func (c *operationColumns) add(key tracestore.OperationKey, h *tracestore.Histogram) {
	first, counts := heatCounts(h)
	quantile := func(q float64) int64 { return route.Duration(h.Quantile(q)) }
	c.Service = append(c.Service, key.Service)
	c.Name = append(c.Name, key.Operation)
	c.Kind += fmt.Sprint(otlpdata.KindOf(key.Kind))
	c.Calls = append(c.Calls, h.Count())
	c.P50 = append(c.P50, quantile(0.5))
	c.P95 = append(c.P95, quantile(0.95))
	c.P99 = append(c.P99, quantile(0.99))
	c.Bucket = append(c.Bucket, first)
	c.Counts = append(c.Counts, counts)
}

// heatCounts returns the counts of heatmap buckets, starting at the first bucket with durations.
func heatCounts(h *tracestore.Histogram) (first int, counts []uint64) {
	from, all := h.Counts()
	first = tracestore.HeatBucket(from)
	counts = make([]uint64, tracestore.HeatBucket(from+len(all)-1)-first+1)
	for i, n := range all {
		counts[tracestore.HeatBucket(from+i)-first] += n
	}
	return first, counts
}
