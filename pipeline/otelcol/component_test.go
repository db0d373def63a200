package otelcol_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/filterprocessor"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/receiver"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otelcol"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

// A component's metrics are metrics of the program, with the names that the Collector gives
// them.
func TestMetricsAndLog(t *testing.T) {
	f := pipelinetest.NewFixture("filter", 1<<20)
	next := &sink{}
	p := buildWith(t, otelcol.Processor(filterprocessor.NewFactory()), f.Settings,
		map[string]any{"traces": map[string]any{"span": []any{`name == "b"`}}}, next)
	if err := p.Consume(t.Context(), otlpdata.FromTraces(spans("a", "b", "b"), otlpdata.Meta{})); err != nil {
		t.Fatal(err)
	}
	if len(next.got) != 1 || next.got[0].Len() != 1 {
		t.Errorf("passed on %v", next.got)
	}
	for metric, want := range map[string]float64{
		"otelcol_processor_filter_spans_filtered": 2, "otelcol_processor_incoming_items": 3, "otelcol_processor_outgoing_items": 1,
	} {
		total := 0.0
		for _, v := range f.Samples(t, metric) {
			total += v
		}
		if total != want {
			t.Errorf("%s is %v, want %v", metric, total, want)
		}
	}
	if f.Logs.Len() == 0 {
		t.Error("the component has logged nothing")
	}
}

// life is a processor of the Collector whose start and stop a test decides about.
type life struct {
	passing
	start func(component.Host) error
	stop  func(context.Context) error
}

func (l *life) Start(_ context.Context, h component.Host) error { return l.start(h) }
func (l *life) Shutdown(ctx context.Context) error              { return l.stop(ctx) }

func lifeFactory(l *life) pipeline.Factory {
	return otelcol.Processor(processor.NewFactory(component.MustNewType("life"), func() component.Config { return &hopConfig{} },
		processor.WithTraces(func(_ context.Context, _ processor.Settings, _ component.Config, next consumer.Traces) (processor.Traces, error) {
			l.Traces = next
			return l, nil
		}, component.StabilityLevelStable)))
}

// What a component says about its state is what the program reports.
func TestStatus(t *testing.T) {
	bad := errors.New("no connection")
	f := pipelinetest.NewFixture("life", 1<<20)
	l := &life{stop: func(context.Context) error { return nil }, start: func(h component.Host) error {
		if h.GetExtensions() == nil || len(h.GetExtensions()) > 0 {
			t.Error("extensions are not an empty map")
		}
		componentstatus.ReportStatus(h, componentstatus.NewEvent(componentstatus.StatusStarting))
		componentstatus.ReportStatus(h, componentstatus.NewRecoverableErrorEvent(bad))
		componentstatus.ReportStatus(h, componentstatus.NewEvent(componentstatus.StatusOK))
		componentstatus.ReportStatus(h, componentstatus.NewFatalErrorEvent(bad))
		return nil
	}}
	buildWith(t, lifeFactory(l), f.Settings, nil, &sink{})
	got := f.Reports()
	if len(got) != 3 || !errors.Is(got[0], bad) || pipeline.IsNotReady(got[0]) || got[1] != nil || !pipeline.IsNotReady(got[2]) {
		t.Errorf("reported %v", got)
	}
}

// Stop returns when its time is up, even if the component does not.
func TestStopInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		l := &life{start: func(component.Host) error { return nil }, stop: func(context.Context) error {
			<-release
			return nil
		}}
		f := pipelinetest.NewFixture("life", 1<<20)
		factory := lifeFactory(l)
		p, err := factory.Build(f.Settings, factory.Defaults(), &sink{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := p.(pipeline.Stopper).Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		close(release)
	})
}

// An error of a component has the class that it has for the Collector.
func TestErrorClasses(t *testing.T) {
	bad := errors.New("bad")
	own := pipeline.Overloaded(bad, time.Minute)
	for _, c := range []struct {
		name string
		err  error
		want codes.Code
	}{
		{"unmarked", bad, codes.Unavailable},
		{"permanent", consumererror.NewPermanent(bad), codes.InvalidArgument},
		{"retryable", consumererror.NewRetryableError(bad), codes.Unavailable},
		{"some spans", consumererror.NewTraces(bad, spans("a")), codes.Unavailable},
		{"HTTP 429", consumererror.NewOTLPHTTPError(bad, 429), codes.ResourceExhausted},
		{"HTTP 503", consumererror.NewOTLPHTTPError(bad, 503), codes.Unavailable},
		{"HTTP 400", consumererror.NewOTLPHTTPError(bad, 400), codes.InvalidArgument},
		{"gRPC", consumererror.NewOTLPGRPCError(bad, status.New(codes.Unavailable, "")), codes.Unavailable},
		{"bare gRPC status", status.Error(codes.InvalidArgument, "bad"), codes.InvalidArgument},
		{"own", own, codes.ResourceExhausted},
		{"own, wrapped", consumererror.NewTraces(own, spans("a")), codes.ResourceExhausted},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := exporter.NewFactory(component.MustNewType("hop"), func() component.Config { return &hopConfig{} },
				exporter.WithTraces(func(context.Context, exporter.Settings, component.Config) (exporter.Traces, error) {
					next, err := consumer.NewTraces(func(context.Context, ptrace.Traces) error { return c.err })
					return &hopExporter{Traces: next}, err
				}, component.StabilityLevelStable))
			err := build(t, otelcol.Exporter(f), nil, nil).Consume(t.Context(), pipelinetest.Batch(t, otlpdata.Meta{}, 2))
			if got := pipeline.GRPCStatus(err).Code(); got != c.want || !errors.Is(err, bad) && c.name != "bare gRPC status" {
				t.Errorf("%v has class %v, want %v", err, got, c.want)
			}
		})
	}
}

// An exporter with a queue of its own says that acknowledged spans are in memory.
func TestDurability(t *testing.T) {
	type queue struct {
		Enabled bool `mapstructure:"enabled"`
	}
	type config struct {
		Queue queue `mapstructure:"sending_queue"`
	}
	f := exporter.NewFactory(component.MustNewType("queued"), func() component.Config { return &config{queue{true}} },
		exporter.WithTraces(func(context.Context, exporter.Settings, component.Config) (exporter.Traces, error) {
			next, err := consumer.NewTraces(func(context.Context, ptrace.Traces) error { return nil })
			return &hopExporter{Traces: next}, err
		}, component.StabilityLevelStable))
	for want, keys := range map[pipeline.Durability]map[string]any{
		pipeline.DurabilityQueued: nil,
		pipeline.DurabilitySent:   {"sending_queue": map[string]any{"enabled": false}},
	} {
		if got := build(t, otelcol.Exporter(f), keys, nil).(pipeline.DurabilityReporter).Durability(); got != want {
			t.Errorf("%v: %s, want %s", keys, got, want)
		}
	}
}

// A receiver passes spans on within the budget for requests in flight, and its errors tell whether
// a client should retry.
func TestReceiver(t *testing.T) {
	var first consumer.Traces
	f := otelcol.Receiver(receiver.NewFactory(component.MustNewType("source"), func() component.Config { return &hopConfig{} },
		receiver.WithTraces(func(_ context.Context, _ receiver.Settings, _ component.Config, next consumer.Traces) (receiver.Traces, error) {
			first = next
			return &passing{}, nil
		}, component.StabilityLevelStable)))
	fixture := pipelinetest.NewFixture("source", 1000)
	next := &sink{}
	r, err := f.Build(fixture.Settings, f.Defaults(), next)
	if err != nil {
		t.Fatal(err)
	}
	pipelinetest.Start(t, r)
	send := func(names ...string) error { return first.ConsumeTraces(t.Context(), spans(names...)) }
	if err := send("a"); err != nil || len(next.got) != 1 || next.got[0].Meta().Format != "source" {
		t.Errorf("%v, passed on %v", err, next.got)
	}
	if used := fixture.Settings.Budget.Used(); used != 0 || fixture.Settings.Budget.Peak() == 0 {
		t.Errorf("%d bytes reserved, at most %d", used, fixture.Settings.Budget.Peak())
	}
	var limit *otlpdata.LimitError
	if err := send(make([]string, 100)...); !errors.As(err, &limit) || !consumererror.IsPermanent(err) {
		t.Errorf("too large: %v", err)
	}
	other, err := fixture.Settings.Budget.Reserve(990)
	if err != nil {
		t.Fatal(err)
	}
	if err := send("a"); !errors.Is(err, pipeline.ErrOverBudget) || consumererror.IsPermanent(err) {
		t.Errorf("no budget: %v", err)
	}
	other.Release()
	next.err = pipeline.Permanent(errors.New("bad data"))
	if err := send("a"); !consumererror.IsPermanent(err) {
		t.Errorf("permanent: %v", err)
	}
	next.err = pipeline.Overloaded(errors.New("full"), time.Second)
	if err := send("a"); err == nil || consumererror.IsPermanent(err) {
		t.Errorf("overloaded: %v", err)
	}
}
