package remotestorage

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tracing-backend/tracing/internal/translate/pagetoken"
	"github.com/tracing-backend/tracing/internal/translate/queryfilter"
	"github.com/tracing-backend/tracing/internal/wire/storage_v1"
	"github.com/tracing-backend/tracing/internal/wire/storage_v2"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// parameters are the parameters that queries of both versions share.
type parameters interface {
	GetServiceName() string
	GetOperationName() string
	GetStartTimeMin() *timestamppb.Timestamp
	GetStartTimeMax() *timestamppb.Timestamp
	GetDurationMin() *durationpb.Duration
	GetDurationMax() *durationpb.Duration
}

var (
	errNoQuery  = status.Error(codes.InvalidArgument, "missing query")
	errPageSize = errors.New("page_size must not be negative")
)

func queryV1(tenant string, p *storage_v1.TraceQueryParameters) (tracestore.Query, error) {
	if p == nil {
		return tracestore.Query{}, errNoQuery
	}
	where := tracestore.And{}
	for _, key := range slices.Sorted(maps.Keys(p.GetTags())) {
		where = append(where, storequery.TagCondition(key, p.GetTags()[key]))
	}
	return query(tenant, p, p.GetNumTraces(), where)
}

func queryV2(tenant string, p *storage_v2.TraceQueryParameters) (tracestore.Query, error) {
	if p == nil {
		return tracestore.Query{}, errNoQuery
	}
	where := tracestore.And{}
	for _, kv := range p.GetAttributes() {
		text, err := anyText(kv.GetValue())
		if err != nil {
			return tracestore.Query{}, invalid(err)
		}
		where = append(where, storequery.TagCondition(kv.GetKey(), text))
	}
	q, err := query(tenant, p, p.GetSearchDepth(), where)
	if err != nil {
		return q, err
	}
	if p.GetFilter() != nil {
		if q.Where != nil {
			return q, invalid(queryfilter.ErrNotAlone)
		}
		if q.Where, err = queryfilter.Parse(p.GetFilter()); err != nil {
			return q, invalid(fmt.Errorf("filter: %w", err))
		}
	}
	return q, addPage(&q, p)
}

// addPage restricts a query to the requested page.
func addPage(q *tracestore.Query, p *storage_v2.TraceQueryParameters) (err error) {
	size := p.GetPagination().GetPageSize()
	if size < 0 {
		return invalid(errPageSize)
	}
	if size > 0 {
		q.Limit = int(size)
	}
	if q.After, err = pagetoken.Parse(p.GetPagination().GetPageToken(), identity(q.Tenant, p)); err != nil {
		return invalid(err)
	}
	return nil
}

// nextPage returns the token of the page after a position, or "" if there is none or if the client
// does not request pages.
func nextPage(tenant string, p *storage_v2.TraceQueryParameters, next tracestore.Cursor) string {
	if p.GetPagination() == nil {
		return ""
	}
	return pagetoken.New(next, identity(tenant, p))
}

// identity returns the tenant and all conditions of a query in the form that page tokens contain.
func identity(tenant string, p *storage_v2.TraceQueryParameters) []byte {
	same := proto.CloneOf(p)
	same.SearchDepth, same.Pagination = 0, nil
	encoded, _ := proto.MarshalOptions{Deterministic: true}.Marshal(same) // cannot fail: it was decoded
	return append(strconv.AppendQuote(nil, tenant), encoded...)
}

func query(tenant string, p parameters, depth int32, where tracestore.And) (q tracestore.Query, err error) {
	q = tracestore.Query{Tenant: tenant, Limit: int(depth)}
	if depth <= 0 {
		q.Limit = defaultLimit
	}
	if q.From, q.To, err = window(p.GetStartTimeMin(), p.GetStartTimeMax()); err != nil {
		return q, err
	}
	if s := p.GetServiceName(); s != "" {
		where = append(where, equals(tracestore.Service, s))
	}
	if o := p.GetOperationName(); o != "" {
		where = append(where, equals(tracestore.Name, o))
	}
	if where, err = duration(where, tracestore.Ge, p.GetDurationMin()); err != nil {
		return q, err
	}
	if where, err = duration(where, tracestore.Le, p.GetDurationMax()); err != nil {
		return q, err
	}
	if len(where) > 0 {
		q.Where = where
	}
	return q, nil
}

func equals(p tracestore.Place, value string) tracestore.Expr {
	return tracestore.Cond{Field: tracestore.Field{Place: p}, Op: tracestore.Eq, Value: tracestore.Text(value)}
}

// duration adds a bound, unless it is missing or 0: clients send 0 for no bound.
func duration(where tracestore.And, op tracestore.Op, d *durationpb.Duration) (tracestore.And, error) {
	if d.GetSeconds() == 0 && d.GetNanos() == 0 {
		return where, nil
	}
	if err := d.CheckValid(); err != nil {
		return nil, invalid(err)
	}
	ns := float64(d.GetSeconds())*1e9 + float64(d.GetNanos())
	if d.GetSeconds() < math.MaxInt64/int64(time.Second) {
		ns = float64(d.AsDuration()) // exact if it fits into a time.Duration
	}
	return append(where, tracestore.Cond{Field: tracestore.Field{Place: tracestore.Duration}, Op: op, Value: tracestore.Number(ns)}), nil
}

// window returns the bounds of a time range. A missing time, or the year 1 that some clients send,
// sets no bound.
func window(from, to *timestamppb.Timestamp) (f, t time.Time, err error) {
	if f, err = moment(from); err != nil {
		return f, t, err
	}
	t, err = moment(to)
	return f, t, err
}

func moment(ts *timestamppb.Timestamp) (time.Time, error) {
	if ts == nil {
		return time.Time{}, nil
	}
	if err := ts.CheckValid(); err != nil {
		return time.Time{}, invalid(err)
	}
	return ts.AsTime(), nil
}

func invalid(err error) error { return status.Error(codes.InvalidArgument, err.Error()) }

// anyText returns the text form of a value for comparisons.
func anyText(v *storage_v2.AnyValue) (string, error) {
	switch v := v.GetValue().(type) {
	case *storage_v2.AnyValue_StringValue:
		return v.StringValue, nil
	case *storage_v2.AnyValue_BoolValue:
		return strconv.FormatBool(v.BoolValue), nil
	case *storage_v2.AnyValue_IntValue:
		return strconv.FormatInt(v.IntValue, 10), nil
	case *storage_v2.AnyValue_DoubleValue:
		return otlpdata.DoubleValue(v.DoubleValue).AsString(), nil
	case *storage_v2.AnyValue_BytesValue:
		return otlpdata.EncodedValue(otlpdata.ValueBytes, string(v.BytesValue)).AsString(), nil
	case *storage_v2.AnyValue_ArrayValue:
		return encodedText(otlpdata.ValueArray, v.ArrayValue)
	case *storage_v2.AnyValue_KvlistValue:
		return encodedText(otlpdata.ValueMap, v.KvlistValue)
	}
	return "", nil
}

// maxListValue is the maximum size of an array or map in a query in bytes, because its text is
// created by recursion.
const maxListValue = 1 << 10

// encodedText relies on these messages having the same encoding as in OTLP.
func encodedText(kind otlpdata.ValueKind, m proto.Message) (string, error) {
	if n := proto.Size(m); n > maxListValue {
		return "", fmt.Errorf("list value of %d bytes in a condition exceeds the maximum of %d", n, maxListValue)
	}
	b, err := proto.Marshal(m)
	if err != nil {
		return "", err
	}
	return otlpdata.EncodedValue(kind, string(b)).AsString(), nil
}
