package pipeline_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// The four metrics of the interface have its names and labels.
func TestServiceMetrics(t *testing.T) {
	w := newWorld()
	p := w.start(t, branching)
	if err := w.source["source/2"].Consume(t.Context(), spans(2, "Shop Front", "bank-1.eu", "Überweisung")); err != nil {
		t.Fatal(err)
	}
	w.take = func(string, *otlpdata.Batch) error { return errors.New("no") }
	if err := w.source["source/2"].Consume(t.Context(), spans(0, "shop_front")); err == nil {
		t.Fatal("no error")
	}
	got, want := p.metrics(t, "tracing_collector_"), []string{
		`tracing_collector_spans_received{debug="false",format="otlp",svc="__berweisung",transport="grpc"} 3`,
		`tracing_collector_spans_received{debug="false",format="otlp",svc="bank-1.eu",transport="grpc"} 3`,
		`tracing_collector_spans_received{debug="false",format="otlp",svc="shop_front",transport="grpc"} 4`,
		`tracing_collector_spans_saved_by_svc{debug="false",result="err",svc="shop_front"} 1`,
		`tracing_collector_spans_saved_by_svc{debug="false",result="ok",svc="__berweisung"} 3`,
		`tracing_collector_spans_saved_by_svc{debug="false",result="ok",svc="bank-1.eu"} 3`,
		`tracing_collector_spans_saved_by_svc{debug="false",result="ok",svc="shop_front"} 3`,
		`tracing_collector_traces_received{debug="false",format="otlp",svc="__berweisung",transport="grpc"} 1`,
		`tracing_collector_traces_received{debug="false",format="otlp",svc="bank-1.eu",transport="grpc"} 1`,
		`tracing_collector_traces_received{debug="false",format="otlp",svc="shop_front",transport="grpc"} 2`,
		`tracing_collector_traces_saved_by_svc{debug="false",result="err",svc="shop_front"} 1`,
		`tracing_collector_traces_saved_by_svc{debug="false",result="ok",svc="__berweisung"} 1`,
		`tracing_collector_traces_saved_by_svc{debug="false",result="ok",svc="bank-1.eu"} 1`,
		`tracing_collector_traces_saved_by_svc{debug="false",result="ok",svc="shop_front"} 1`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", lines(got...), lines(want...))
	}
}

// No client can make more than 4000 label values, the shared one included.
func TestServiceLabelsAreBounded(t *testing.T) {
	w := newWorld()
	p := w.start(t, small)
	names := make([]string, 4100)
	for i := range names {
		names[i] = fmt.Sprintf("service-%d-%s", i, strings.Repeat("x", i%400))
	}
	for range 2 {
		if err := w.source["source"].Consume(t.Context(), spans(0, names...)); err != nil {
			t.Fatal(err)
		}
	}
	series := p.metrics(t, "tracing_collector_spans_received{")
	if len(series) != 4000 {
		t.Errorf("%d series", len(series))
	}
	want := `tracing_collector_spans_received{debug="false",format="otlp",svc="other-services",transport="grpc"} 202`
	if !slices.Contains(series, want) {
		t.Errorf("no line %s", want)
	}
	for _, s := range series {
		if len(s) > 400 {
			t.Errorf("a label value is too long: %s", s)
		}
	}
}
