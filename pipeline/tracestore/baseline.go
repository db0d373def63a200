package tracestore

import "time"

// OperationKey identifies spans whose durations can be compared.
type OperationKey struct {
	Service   string // as corrected by otlpdata.ServiceName
	Operation string // as returned by otlpdata.Span.Operation
	Kind      string // as returned by otlpdata.Span.KindName
}

// BaselineQuery selects calls.
type BaselineQuery struct {
	// Operations are the operations to count, without duplicates. Calls that a store counts only as
	// OtherOperation belong to none of them.
	Operations []OperationKey
	// From and To limit the start of spans as in Query, both inclusive. Windows of whole minutes
	// need the least work.
	From, To time.Time
}

// Window returns the bounds of start times, as Query.Window does.
func (q *BaselineQuery) Window() (from, to uint64, ok bool) {
	return Query{From: q.From, To: q.To}.Window()
}

// BaselineAnswer is the result of Metrics.Baselines.
type BaselineAnswer struct {
	// Durations has one histogram for each operation of the query, in the same order. It is empty
	// for operations without calls.
	Durations []Histogram
	// Reasons says why some selected calls are not counted.
	Reasons
}
