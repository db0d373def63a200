package aggregate

import (
	"fmt"
	"reflect"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
	"github.com/tracing-backend/tracing/test/bench"
)

// TestFacetsOfSegments compares the facets of whole blocks, and of some of their rows, with the
// definition.
func TestFacetsOfSegments(t *testing.T) {
	soak.SkipIfRaced(t)
	const spans = 12_000
	s := newRealStore(t, 1, scan.Options{})
	var sent []*otlpdata.Batch
	for r := range bench.New(7, scantest.Day).Requests(spans, 512) {
		b, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{}, otlpdata.Limits{})
		scantest.Must(err)
		sent = append(sent, b)
	}
	s.SegmentOf(t, sent...)
	failed := scantest.Property(tracestore.Status, tracestore.Eq, tracestore.Text("error"))
	slow := scantest.Property(tracestore.Duration, tracestore.Gt, tracestore.Number(50e6))
	service := scantest.Property(tracestore.Service, tracestore.Eq, tracestore.Text(bench.New(7, scantest.Day).Services()[5]))
	for _, where := range []tracestore.Expr{nil, service, slow} {
		for _, selection := range []*tracestore.Selection{nil, {Where: failed}, {Where: slow}, {}} {
			q := tracestore.Query{Where: where}
			a := tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 20, Selection: selection}}
			want, err := storequery.AggregateSpans(q, a, sent...)
			scantest.Must(err)
			got, err := s.Aggregate(t.Context(), q, a)
			want.Scanned = got.Scanned
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("where %v, selection %+v: %v\n got %+v\nwant %+v", where, selection, err, got.Facets, want.Facets)
			}
		}
	}
}

// TestFacetsOfIDs checks that spans of fields with a different value each are counted, and frequent
// values among ids.
func TestFacetsOfIDs(t *testing.T) {
	soak.SkipIfRaced(t)
	const spans = 30_000
	td := ptrace.NewTraces()
	list := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for i := range spans {
		span := list.AppendEmpty()
		span.SetTraceID([16]byte{byte(i), byte(i >> 8), 1})
		span.Attributes().PutStr("text", fmt.Sprint("id ", i))
		span.Attributes().PutInt("number", int64(i))
		user := "anonymous"
		if i%3 > 0 {
			user = fmt.Sprint("user ", i)
		}
		span.Attributes().PutStr("user", user)
	}
	s := newRealStore(t, 1, scan.Options{})
	s.SegmentOf(t, otlpdata.FromTraces(td, otlpdata.Meta{}))
	got, err := s.Aggregate(t.Context(), tracestore.Query{}, tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 1}})
	scantest.Must(err)
	found := 0
	for _, f := range got.Facets.Facets {
		counted, others := uint64(1), uint64(spans-keptValues)
		switch f.Field.Key {
		case "text", "number":
		case "user":
			counted, others = spans/3, spans-spans/3-(keptValues-1)
		default:
			continue
		}
		found++
		if f.Spans != spans || f.Distinct != storequery.MaxFacetDistinct || f.Other != others || f.Values[0].Count != counted {
			t.Errorf("%+v; want %d other values, and a first value of %d spans", f, others, counted)
		}
	}
	if found != 3 {
		t.Errorf("%d fields", found)
	}
}
