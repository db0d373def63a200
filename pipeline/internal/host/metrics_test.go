package host_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// The metrics have the names and labels of the public interface.
func TestServiceMetrics(t *testing.T) {
	w := hosttest.NewWorld()
	p := w.Start(t, hosttest.Branching)
	source := w.Source["source/2"]
	if err := source.Consume(t.Context(), hosttest.Spans(2, "Shop Front", "bank-1.eu", "Überweisung")); err != nil {
		t.Fatal(err)
	}
	debug, err := hosttest.Spans(1, "bank-1.eu").Edit(func(td ptrace.Traces) error {
		td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(1).Attributes().PutInt(otlpdata.FlagsAttribute, int64(otlpdata.FlagDebug))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := source.Consume(t.Context(), debug); err != nil {
		t.Fatal(err)
	}
	w.Accept = func(string, *otlpdata.Batch) error { return errors.New("no") }
	if err := source.Consume(t.Context(), hosttest.Spans(0, "shop_front")); err == nil {
		t.Fatal("no error")
	}
	w.Accept = func(string, *otlpdata.Batch) error {
		return &pipeline.Partial{Rejected: 1, Err: pipeline.Permanent(errors.New("half"))}
	}
	if err := source.Consume(t.Context(), hosttest.Spans(1, "half")); err == nil {
		t.Fatal("no error")
	}
	got := slices.DeleteFunc(p.Metrics(t, "tracing_collector_"), func(l string) bool { return strings.Contains(l, "save_latency") })
	want := []string{
		`tracing_collector_batch_size 2`,
		`tracing_collector_spans_dropped 0`,
		`tracing_collector_spans_received{debug="false",format="otlp",svc="__berweisung",transport="grpc"} 3`,
		`tracing_collector_spans_received{debug="false",format="otlp",svc="bank-1.eu",transport="grpc"} 4`,
		`tracing_collector_spans_received{debug="false",format="otlp",svc="half",transport="grpc"} 2`,
		`tracing_collector_spans_received{debug="false",format="otlp",svc="shop_front",transport="grpc"} 4`,
		`tracing_collector_spans_received{debug="true",format="otlp",svc="bank-1.eu",transport="grpc"} 1`,
		`tracing_collector_spans_rejected{debug="false",format="otlp",svc="shop_front",transport="grpc"} 1`,
		`tracing_collector_spans_saved_by_svc{debug="false",result="err",svc="half"} 2`,
		`tracing_collector_spans_saved_by_svc{debug="false",result="err",svc="shop_front"} 1`,
		`tracing_collector_spans_saved_by_svc{debug="false",result="ok",svc="__berweisung"} 3`,
		`tracing_collector_spans_saved_by_svc{debug="false",result="ok",svc="bank-1.eu"} 4`,
		`tracing_collector_spans_saved_by_svc{debug="false",result="ok",svc="shop_front"} 3`,
		`tracing_collector_spans_saved_by_svc{debug="true",result="ok",svc="bank-1.eu"} 1`,
		`tracing_collector_traces_received{debug="false",format="otlp",svc="__berweisung",transport="grpc"} 1`,
		`tracing_collector_traces_received{debug="false",format="otlp",svc="bank-1.eu",transport="grpc"} 2`,
		`tracing_collector_traces_received{debug="false",format="otlp",svc="half",transport="grpc"} 1`,
		`tracing_collector_traces_received{debug="false",format="otlp",svc="shop_front",transport="grpc"} 2`,
		`tracing_collector_traces_received{debug="true",format="otlp",svc="bank-1.eu",transport="grpc"} 0`,
		`tracing_collector_traces_rejected{debug="false",format="otlp",svc="shop_front",transport="grpc"} 1`,
		`tracing_collector_traces_saved_by_svc{debug="false",result="err",svc="half"} 1`,
		`tracing_collector_traces_saved_by_svc{debug="false",result="err",svc="shop_front"} 1`,
		`tracing_collector_traces_saved_by_svc{debug="false",result="ok",svc="__berweisung"} 1`,
		`tracing_collector_traces_saved_by_svc{debug="false",result="ok",svc="bank-1.eu"} 2`,
		`tracing_collector_traces_saved_by_svc{debug="false",result="ok",svc="shop_front"} 1`,
		`tracing_collector_traces_saved_by_svc{debug="true",result="ok",svc="bank-1.eu"} 0`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", hosttest.Lines(got...), hosttest.Lines(want...))
	}
	if got := p.Metrics(t, "tracing_collector_save_latency_count"); !slices.Equal(got, []string{"tracing_collector_save_latency_count 4"}) {
		t.Errorf("got %q", got)
	}
}

// A process that only forwards spans has no metrics and debug lines of a collector.
func TestForwardingIsNoCollecting(t *testing.T) {
	debug := app.Override{Path: []string{"service", "telemetry", "logs", "level"}, Value: "debug"}
	w := hosttest.NewWorld()
	p := w.Start(t, "receivers: {source: }\nexporters: {hop: }\n"+
		"service: {pipelines: {traces: {receivers: [source], exporters: [hop]}}}\n", debug)
	if err := w.Source["source"].Consume(t.Context(), hosttest.Spans(0, "shop")); err != nil {
		t.Fatal(err)
	}
	w.Accept = func(string, *otlpdata.Batch) error { return errors.New("no") }
	if err := w.Source["source"].Consume(t.Context(), hosttest.Spans(0, "shop")); err == nil {
		t.Fatal("no error")
	}
	for _, prefix := range []string{"tracing_collector_spans_re", "tracing_collector_traces_", "tracing_collector_spans_saved"} {
		if got := p.Metrics(t, prefix); len(got) > 0 {
			t.Errorf("%q", got)
		}
	}
	if got := p.Logged(t, "Span batch processed by the collector."); len(got) > 0 {
		t.Errorf("%v", got)
	}
}

// With compat_metrics, the metrics of the public interface exist under both names, otherwise under
// one.
func TestCompatMetrics(t *testing.T) {
	w := hosttest.NewWorld()
	p := w.Start(t, hosttest.Small, app.Override{Path: []string{"service", "telemetry", "metrics", "compat_metrics"}, Value: "true"})
	reg := w.Settings["source"].Metrics
	packets := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tracing_agent_packets", Help: "Packets."}, []string{"model", "other"})
	requests := prometheus.NewCounter(prometheus.CounterOpts{Name: "tracing_query_requests_total", Help: "Requests."})
	reg.MustRegister(packets, requests)
	packets.WithLabelValues("tracing", "tracing").Add(2)
	packets.WithLabelValues("zipkin", "x").Add(3)
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	native := otlpdata.FromTraces(td, otlpdata.Meta{Format: "tracing", Transport: "http"})
	if err := w.Source["source"].Consume(t.Context(), native); err != nil {
		t.Fatal(err)
	}
	got := slices.DeleteFunc(p.Metrics(t, "jaeger_"), func(l string) bool {
		return strings.Contains(l, "_bucket{") || strings.Contains(l, "_latency_sum")
	})
	want := []string{
		`jaeger_agent_packets_total{component="source",kind="receiver",model="jaeger",other="tracing"} 2`,
		`jaeger_agent_packets_total{component="source",kind="receiver",model="zipkin",other="x"} 3`,
		`jaeger_build_info{build_date="",revision="",version=""} 1`,
		`jaeger_collector_batch_size 1`,
		`jaeger_collector_save_latency_count 1`,
		`jaeger_collector_spans_dropped_total 0`,
		`jaeger_collector_spans_received_total{debug="false",format="jaeger",svc="missing-service-name",transport="http"} 1`,
		`jaeger_collector_spans_saved_by_svc_total{debug="false",result="ok",svc="missing-service-name"} 1`,
		`jaeger_collector_traces_received_total{debug="false",format="jaeger",svc="missing-service-name",transport="http"} 1`,
		`jaeger_collector_traces_saved_by_svc_total{debug="false",result="ok",svc="missing-service-name"} 1`,
		`jaeger_query_requests_total{component="source",kind="receiver"} 0`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", hosttest.Lines(got...), hosttest.Lines(want...))
	}
	unchanged := `tracing_collector_spans_received{debug="false",format="tracing",svc="missing-service-name",transport="http"} 1`
	if got := p.Metrics(t, "tracing_collector_spans_received{"); !slices.Equal(got, []string{unchanged}) {
		t.Errorf("got %q, want %q", got, unchanged)
	}
	if got := hosttest.NewWorld().Start(t, hosttest.Small).Metrics(t, "jaeger_"); len(got) > 0 {
		t.Errorf("without compat_metrics: %q", got)
	}
}

// A component with a faulty collector does not hide other metrics, under either name.
func TestCompatMetricsBesideBrokenOnes(t *testing.T) {
	w := hosttest.NewWorld()
	p := w.Start(t, hosttest.Small, app.Override{Path: []string{"service", "telemetry", "metrics", "compat_metrics"}, Value: "true"})
	w.Settings["source"].Metrics.MustRegister(hosttest.BrokenCollector{})
	families, err := p.Gatherer().Gather()
	if err == nil || !slices.IsSortedFunc(families, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) }) {
		t.Errorf("%v; %d families", err, len(families))
	}
	if !slices.ContainsFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "jaeger_collector_batch_size" }) {
		t.Error("valid families are missing")
	}
}

// Clients cannot create more than 4000 label values, including the shared one.
func TestServiceLabelsAreBounded(t *testing.T) {
	w := hosttest.NewWorld()
	p := w.Start(t, hosttest.Small)
	names := make([]string, 4100)
	for i := range names {
		names[i] = fmt.Sprintf("service-%d-%s", i, strings.Repeat("x", i%400))
	}
	for range 2 {
		if err := w.Source["source"].Consume(t.Context(), hosttest.Spans(0, names...)); err != nil {
			t.Fatal(err)
		}
	}
	series := p.Metrics(t, "tracing_collector_spans_received{")
	if len(series) != 4000 {
		t.Errorf("%d series", len(series))
	}
	want := `tracing_collector_spans_received{debug="false",format="otlp",svc="other-services",transport="grpc"} 202`
	if !slices.Contains(series, want) {
		t.Errorf("no line %s", want)
	}
	for _, s := range series {
		if len(s) > 400 {
			t.Errorf("label value too long: %s", s)
		}
	}
}
