package grpc

import (
	"errors"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"

	"github.com/tracing-backend/tracing/internal/wire/storage_v2"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// TestSpanSets checks searches for span sets, which the protocol does not support.
func TestSpanSets(t *testing.T) {
	r := &reader2{find: func(q *storage_v2.TraceQueryParameters, s grpc.ServerStreamingServer[tracepb.TracesData]) error {
		if q.GetServiceName() != "" || q.GetOperationName() == "c" {
			return nil
		}
		return errors.Join(s.Send(trace(3, "a", 9)), s.Send(trace(2, "a", 7)), s.Send(trace(2, "b", 6)), s.Send(trace(1, "b", 5)))
	}, get: func(p *storage_v2.GetTraceParams, s grpc.ServerStreamingServer[tracepb.TracesData]) error {
		switch id := p.GetTraceId()[15]; id {
		case 3:
			return s.Send(trace(3, "a", 9))
		case 2:
			return errors.Join(s.Send(trace(2, "a", 7)), s.Send(trace(2, "b", 6)))
		default:
			return s.Send(trace(id, "b", 5))
		}
	}}
	addr, _ := new(fake).serve(t, "localhost:0", &capabilities2{search: &storage_v2.SearchCapabilities{WithoutServiceName: true}}, r)
	e := start(t, addr, func(c *config) { c.MaxHeld = 1 << 20 })
	named := func(name string) storequery.SpanSet {
		return storequery.Select{Where: tracestore.Cond{Field: tracestore.Field{Place: tracestore.Name}, Value: tracestore.Text(name)}}
	}
	long := tracestore.Cond{Field: tracestore.Field{Place: tracestore.TraceDuration}, Op: tracestore.Ge, Value: tracestore.Number(0)}
	root := tracestore.Cond{Field: tracestore.Field{Place: tracestore.RootName}, Value: tracestore.Text("b")}
	for _, c := range []struct {
		set  storequery.SpanSet
		want string
	}{
		{storequery.And{Left: named("a"), Right: named("b")}, "\x02"},
		{storequery.And{Left: named("a"), Right: named("c")}, ""},
		{storequery.Or{Left: named("b"), Right: named("c")}, "\x02\x01"},
		{storequery.Relation{Left: named("a"), Right: named("b")}, ""},
		{storequery.Select{Where: long}, "\x03\x02\x01"},
		{storequery.Select{Where: root}, "\x02\x01"},
	} {
		res, err := storequery.Find(t.Context(), e, tracestore.Query{Limit: 5}, c.set, tracestore.WantFull)
		if err != nil {
			t.Fatal(err)
		}
		var ids []byte
		for r, err := range res.All {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, r.ID[15])
		}
		if o := res.Outcome(); string(ids) != c.want || !o.Complete() {
			t.Errorf("%#v finds %v, %+v, want %v", c.set, ids, o, []byte(c.want))
		}
	}
}
