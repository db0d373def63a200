package storewire

import (
	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// PutBaselineQuery converts a query for the durations of operations.
func PutBaselineQuery(q *tracestore.BaselineQuery) *store_v1.BaselinesRequest {
	out := &store_v1.BaselinesRequest{From: putTime(q.From), To: putTime(q.To)}
	for _, o := range q.Operations {
		out.Service = append(out.Service, []byte(o.Service))
		out.Operation = append(out.Operation, []byte(o.Operation))
		out.Kind = append(out.Kind, []byte(o.Kind))
	}
	return out
}

// GetBaselineQuery returns a query for the durations of operations.
func GetBaselineQuery(m *store_v1.BaselinesRequest) (tracestore.BaselineQuery, error) {
	q := tracestore.BaselineQuery{From: getTime(m.GetFrom()), To: getTime(m.GetTo())}
	if len(m.GetOperation()) != len(m.GetService()) || len(m.GetKind()) != len(m.GetService()) {
		return q, invalid("columns of operations differ in length")
	}
	for i, service := range m.GetService() {
		q.Operations = append(q.Operations,
			tracestore.OperationKey{Service: string(service), Operation: string(m.Operation[i]), Kind: string(m.Kind[i])})
	}
	return q, nil
}

// PutBaselines converts the answer of a store.
func PutBaselines(a *tracestore.BaselineAnswer) *store_v1.BaselinesResponse {
	out := &store_v1.BaselinesResponse{Reasons: putReasons(a.Reasons)}
	for i := range a.Durations {
		first, counts := a.Durations[i].Counts()
		out.Duration = append(out.Duration, a.Durations[i].Sum)
		out.FirstBucket = append(out.FirstBucket, uint32(first))
		out.Buckets = append(out.Buckets, uint32(len(counts)))
		out.Counts = append(out.Counts, counts...)
	}
	return out
}

// GetBaselines returns the answer of a store for a number of operations.
func GetBaselines(m *store_v1.BaselinesResponse, operations int) (a tracestore.BaselineAnswer, err error) {
	a = tracestore.BaselineAnswer{Reasons: getReasons(m.GetReasons())}
	if len(m.GetDuration()) != operations || len(m.GetFirstBucket()) != operations || len(m.GetBuckets()) != operations {
		return a, invalid("columns of durations differ in length")
	}
	counts := m.GetCounts()
	for i := range operations {
		buckets := int(m.Buckets[i])
		if buckets > len(counts) {
			return a, invalid("durations of an operation lack counts")
		}
		h, err := tracestore.HistogramOf(m.Duration[i], int(m.FirstBucket[i]), counts[:buckets:buckets])
		if err != nil {
			return a, invalid("%w", err)
		}
		counts = counts[buckets:]
		a.Durations = append(a.Durations, h)
	}
	return a, nil
}
