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

// question is what the protocol can ask. It is as narrow as it can be without leaving out what a condition holds on.
type question struct {
	service, operation       string
	tags                     map[string]string
	minDuration, maxDuration time.Duration // 0: no bound
	from, to                 uint64        // bounds of starts, nanoseconds since the Unix epoch
	limit                    int

	exact bool            // the question is the whole condition
	where tracestore.And  // what it asks for, as a condition on one span
	asks  tracestore.Expr // where, made an Expr once
}

// ask returns the question for a condition; window and limit are not set.
func ask(where tracestore.Expr) *question {
	q := &question{tags: map[string]string{}, exact: true}
	q.add(where)
	q.asks = q.where
	return q
}

// add narrows the question by a condition that must hold besides.
func (q *question) add(e tracestore.Expr) {
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

// addCond reports whether the question says all of the condition now.
func (q *question) addCond(c tracestore.Cond) bool {
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
		q.addAttribute(c) // anywhere, of which this place is one
	}
	return false
}

func (q *question) addName(name *string, c tracestore.Cond) bool {
	if *name != "" {
		return *name == c.Value.Text
	}
	*name = c.Value.Text
	q.where = append(q.where, c)
	return true
}

// addAttribute adds a tag, unless its key is one that means something else than an attribute.
func (q *question) addAttribute(c tracestore.Cond) bool {
	meant, plain := storequery.TagCondition(c.Field.Key, c.Value.Text).(tracestore.Cond)
	if !plain || meant.Field.Place != tracestore.AnyAttribute || meant.Field.Key != c.Field.Key || !utf8.ValidString(c.Field.Key) {
		return false
	}
	return q.addTag(c.Field.Key, c.Value.Text)
}

func (q *question) addTag(key, value string) bool {
	if old, ok := q.tags[key]; ok {
		return old == value
	}
	q.tags[key] = value
	q.where = append(q.where, storequery.TagCondition(key, value))
	return true
}

// mostDuration is the greatest bound that is asked for, in nanoseconds: servers of the field calculate with 63 bits.
const mostDuration = 1 << 62

// addDuration narrows the bounds to whole nanoseconds that are no narrower than the condition.
func (q *question) addDuration(c tracestore.Cond) bool {
	ns := c.Value.Number
	if !(ns >= 1 && ns <= mostDuration) { // NaN as well
		return false
	}
	least, most := c.Op == tracestore.Ge || c.Op == tracestore.Gt, c.Op == tracestore.Le || c.Op == tracestore.Lt
	if c.Op == tracestore.Eq {
		least, most = true, true
	}
	if least {
		q.minDuration = max(q.minDuration, time.Duration(math.Floor(ns)))
		q.where = append(q.where, durationIs(tracestore.Ge, math.Floor(ns)))
	}
	if bound := time.Duration(math.Ceil(ns)); most {
		if q.maxDuration == 0 || bound < q.maxDuration {
			q.maxDuration = bound
		}
		q.where = append(q.where, durationIs(tracestore.Le, math.Ceil(ns)))
	}
	return ns == math.Floor(ns) && (c.Op == tracestore.Ge || c.Op == tracestore.Le || c.Op == tracestore.Eq)
}

func durationIs(op tracestore.Op, ns float64) tracestore.Expr {
	return tracestore.Cond{Field: tracestore.Field{Place: tracestore.Duration}, Op: op, Value: tracestore.Number(ns)}
}

// holds reports whether a span is one that the question asks for.
func (q *question) holds(s tracestore.Span) bool {
	return q.from <= s.Start && s.Start <= q.to && tracestore.Match(q.asks, s)
}

func (q *question) v1() *storage_v1.TraceQueryParameters {
	return &storage_v1.TraceQueryParameters{
		ServiceName: q.service, OperationName: q.operation, Tags: q.tags,
		StartTimeMin: nanos(q.from), StartTimeMax: nanos(q.to),
		DurationMin: durationpb.New(q.minDuration), DurationMax: durationpb.New(q.maxDuration), NumTraces: int32(q.limit),
	}
}

func (q *question) v2() *storage_v2.TraceQueryParameters {
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

// nanos returns nanoseconds since the Unix epoch as a time; timestamppb.New takes signed ones.
func nanos(ns uint64) *timestamppb.Timestamp {
	const second = uint64(time.Second)
	return &timestamppb.Timestamp{Seconds: int64(ns / second), Nanos: int32(ns % second)}
}
