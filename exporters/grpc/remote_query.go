package grpc

import (
	"maps"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tracing-backend/tracing/internal/wire/storage_v1"
	"github.com/tracing-backend/tracing/internal/wire/storage_v2"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// remoteQuery is a query of the protocol. It is as narrow as possible without excluding spans that
// meet the condition.
type remoteQuery struct {
	service, operation       string
	tags                     map[string]string
	minDuration, maxDuration time.Duration // 0: no limit
	from, to                 uint64        // bounds of start times, nanoseconds since the Unix epoch
	limit                    int

	exact bool            // the query is equivalent to the condition, except for elements of arrays
	where tracestore.And  // the query as a condition on one span
	expr  tracestore.Expr // where, converted once
}

// newRemoteQuery returns the query for a condition, without window and limit.
func newRemoteQuery(where tracestore.Expr) *remoteQuery {
	q := &remoteQuery{tags: map[string]string{}, exact: true}
	q.add(where)
	q.expr = q.where
	return q
}

// add narrows the query by a further condition.
func (q *remoteQuery) add(e tracestore.Expr) {
	switch e := e.(type) {
	case nil:
	case tracestore.And:
		for _, part := range e {
			q.add(part)
		}
	case tracestore.Cond:
		q.exact = q.addCond(e) && q.exact
	default:
		q.exact = false
	}
}

// addCond narrows the query by a comparison, and reports whether the query now includes it exactly.
func (q *remoteQuery) addCond(c tracestore.Cond) bool {
	if c.Field.Place == tracestore.Duration {
		return c.Value.IsNumber && q.addDuration(c)
	}
	if c.Op != tracestore.Eq || c.Value.IsNumber || c.Value.Text == "" || !utf8.ValidString(c.Value.Text) {
		return false
	}
	switch c.Field.Place {
	case tracestore.Service:
		return q.addName(&q.service, c)
	case tracestore.Name:
		return q.addName(&q.operation, c)
	case tracestore.Status:
		return c.Value.Text == "error" && q.addTag("error", "true")
	case tracestore.Kind:
		return q.addTag("span.kind", c.Value.Text)
	case tracestore.AnyAttribute:
		return q.addAttribute(c)
	case tracestore.SpanAttribute, tracestore.ResourceAttribute, tracestore.EventAttribute:
		q.addAttribute(c) // matches in all places, including this one
	}
	return false
}

func (q *remoteQuery) addName(name *string, c tracestore.Cond) bool {
	if *name != "" {
		return *name == c.Value.Text
	}
	*name = c.Value.Text
	q.where = append(q.where, c)
	return true
}

// addAttribute adds a tag, unless its key does not mean an attribute.
func (q *remoteQuery) addAttribute(c tracestore.Cond) bool {
	meant, plain := storequery.TagCondition(c.Field.Key, c.Value.Text).(tracestore.Cond)
	if !plain || meant.Field.Place != tracestore.AnyAttribute || meant.Field.Key != c.Field.Key || !utf8.ValidString(c.Field.Key) {
		return false
	}
	return q.addTag(c.Field.Key, c.Value.Text)
}

func (q *remoteQuery) addTag(key, value string) bool {
	if old, ok := q.tags[key]; ok {
		return old == value
	}
	q.tags[key] = value
	q.where = append(q.where, storequery.TagCondition(key, value))
	return true
}

// maxDurationBound is the maximum duration in a query, in nanoseconds. Other servers calculate with
// 63 bits.
const maxDurationBound = 1 << 62

// addDuration narrows the bounds of the duration to whole nanoseconds that include the condition.
func (q *remoteQuery) addDuration(c tracestore.Cond) bool {
	ns := c.Value.Number
	if !(ns >= 1 && ns <= maxDurationBound) { // also excludes NaN
		return false
	}
	lower, upper := c.Op == tracestore.Ge || c.Op == tracestore.Gt, c.Op == tracestore.Le || c.Op == tracestore.Lt
	if c.Op == tracestore.Eq {
		lower, upper = true, true
	}
	if lower {
		q.minDuration = max(q.minDuration, time.Duration(math.Floor(ns)))
		q.where = append(q.where, durationCond(tracestore.Ge, math.Floor(ns)))
	}
	if bound := time.Duration(math.Ceil(ns)); upper {
		if q.maxDuration == 0 || bound < q.maxDuration {
			q.maxDuration = bound
		}
		q.where = append(q.where, durationCond(tracestore.Le, math.Ceil(ns)))
	}
	return ns == math.Floor(ns) && (c.Op == tracestore.Ge || c.Op == tracestore.Le || c.Op == tracestore.Eq)
}

func durationCond(op tracestore.Op, ns float64) tracestore.Expr {
	return tracestore.Cond{Field: tracestore.Field{Place: tracestore.Duration}, Op: op, Value: tracestore.Number(ns)}
}

// matches reports whether a span matches the query.
func (q *remoteQuery) matches(s tracestore.Span) bool {
	return q.from <= s.Start && s.Start <= q.to && tracestore.Match(q.expr, s)
}

func (q *remoteQuery) v1() *storage_v1.TraceQueryParameters {
	return &storage_v1.TraceQueryParameters{
		ServiceName: q.service, OperationName: q.operation, Tags: q.tags,
		StartTimeMin: nanos(q.from), StartTimeMax: nanos(q.to),
		DurationMin: durationpb.New(q.minDuration), DurationMax: durationpb.New(q.maxDuration), NumTraces: int32(q.limit),
	}
}

func (q *remoteQuery) v2() *storage_v2.TraceQueryParameters {
	p := &storage_v2.TraceQueryParameters{
		ServiceName: q.service, OperationName: q.operation,
		StartTimeMin: nanos(q.from), StartTimeMax: nanos(q.to),
		DurationMin: durationpb.New(q.minDuration), DurationMax: durationpb.New(q.maxDuration), SearchDepth: int32(q.limit),
	}
	for _, key := range slices.Sorted(maps.Keys(q.tags)) {
		p.Attributes = append(p.Attributes, &storage_v2.KeyValue{Key: key,
			Value: &storage_v2.AnyValue{Value: &storage_v2.AnyValue_StringValue{StringValue: q.tags[key]}}})
	}
	return p
}

// nanos converts nanoseconds since the Unix epoch. Unlike timestamppb.New it supports the full
// range of uint64.
func nanos(ns uint64) *timestamppb.Timestamp {
	const second = uint64(time.Second)
	return &timestamppb.Timestamp{Seconds: int64(ns / second), Nanos: int32(ns % second)}
}
