package host

import (
	"context"
	"fmt"
	"maps"
	"os"
	"reflect"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config"
	"github.com/tracing-backend/tracing/pipeline/internal/selfexport"
)

// lastExport is the maximum duration of the last export of the spans of self-tracing when the
// process stops or the settings change. The destination may no longer respond.
const lastExport = 2 * time.Second

// selfTracing exports the spans that the process records about its own work.
type selfTracing struct {
	instance string // id of the process
	spans    *prometheus.CounterVec
	lines    *pipeline.RepeatLog
	running  *spanSource // nil: self-tracing is off; guarded by App.changing
}

// spanSource is a provider of spans with settings.
type spanSource struct {
	provider   *sdktrace.TracerProvider
	propagator propagation.TextMapPropagator
}

// Outcomes of tracing_self_spans_total.
const (
	selfSpansSent   = "sent"
	selfSpansFailed = "failed"
)

func newSelfTracing(set pipeline.Settings) *selfTracing {
	s := &selfTracing{instance: uuid.NewString(), lines: pipeline.NewRepeatLog(set), spans: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tracing_self_spans_total",
		Help: "Spans of self-tracing by outcome: sent to their destination, or failed.",
	}, []string{"outcome"})}
	s.spans.WithLabelValues(selfSpansSent)
	s.spans.WithLabelValues(selfSpansFailed)
	return s
}

// exported counts and logs an export.
func (s *selfTracing) exported(spans int, err error) {
	if err == nil {
		s.spans.WithLabelValues(selfSpansSent).Add(float64(spans))
		return
	}
	s.spans.WithLabelValues(selfSpansFailed).Add(float64(spans))
	s.lines.Warn("cannot export spans of self-tracing", zap.Int("spans", spans), zap.Error(err))
}

// newSpanSource returns the source of spans that the settings describe, or nil if self-tracing is
// off.
func (a *App) newSpanSource(ctx context.Context, t *config.Telemetry) (*spanSource, error) {
	if !t.Traces.On() {
		return nil, nil
	}
	resource := map[string]string{"service.name": "tracing", "service.version": a.build.Version, "service.instance.id": a.selfTracing.instance}
	maps.Copy(resource, t.Resource)
	provider, propagator, err := selfexport.New(ctx, &t.Traces, selfexport.Options{
		Resource: resource, ReadFile: config.ReadFile(context.Background()), Console: os.Stdout, Exported: a.selfTracing.exported})
	if err != nil {
		return nil, fmt.Errorf("service::telemetry::traces::%w", err)
	}
	return &spanSource{provider, propagator}, nil
}

// changedSpanSource is like newSpanSource, but changed is false if the settings of self-tracing are
// unchanged.
func (a *App) changedSpanSource(ctx context.Context, before, now *config.Telemetry) (s *spanSource, changed bool, err error) {
	if reflect.DeepEqual(before.Traces, now.Traces) && maps.Equal(before.Resource, now.Resource) {
		return nil, false, nil
	}
	s, err = a.newSpanSource(ctx, now)
	return s, true, err
}

// useSpanSource makes s the source of the process's spans, or turns self-tracing off if s is nil.
// It exports the remaining spans of the previous source.
func (a *App) useSpanSource(ctx context.Context, s *spanSource) {
	if s == nil {
		a.tracer.TurnOff()
	} else {
		a.tracer.TurnOn(s.provider, s.propagator)
	}
	before := a.selfTracing.running
	a.selfTracing.running = s
	before.shutdown(ctx, a.log)
}

// shutdown exports the remaining spans and releases the resources of the source. It takes at most
// lastExport.
func (s *spanSource) shutdown(ctx context.Context, log *zap.Logger) {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastExport)
	defer cancel()
	if err := s.provider.Shutdown(ctx); err != nil {
		log.Warn("did not export all spans of self-tracing", zap.Error(err))
	}
}
