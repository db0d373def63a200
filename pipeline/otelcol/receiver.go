package otelcol

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Receiver returns the factory of a Collector receiver. Its clients get their response when the
// following components have returned. The receiver opens its listeners itself: the limits, tenants
// and admission of package server do not apply to them, and its spans belong to the default tenant.
// The spans of a request count as bytes in flight from the moment that the receiver has decoded
// them.
func Receiver(f receiver.Factory, options ...Option) pipeline.Factory {
	o := optionsOf(options)
	check := func(c component.Config) error {
		next, err := consumer.NewTraces(func(context.Context, ptrace.Traces) error { return nil })
		if err != nil {
			return err
		}
		_, err = f.CreateTraces(context.Background(), receiver.Settings{
			ID: component.NewID(f.Type()), TelemetrySettings: silentTelemetry(),
		}, c, next)
		return err
	}
	return o.applied(f, pipeline.Receiver(f.Type().String(), defaults(f, check, o.keys),
		func(set pipeline.Settings, c Config, next pipeline.Consumer) (*tracesReceiver, error) {
			return newReceiver(f, set, c, next)
		}))
}

// tracesReceiver runs a Collector receiver.
type tracesReceiver struct{ lifecycle }

func newReceiver(f receiver.Factory, set pipeline.Settings, c Config, next pipeline.Consumer) (*tracesReceiver, error) {
	id, tel, err := identity(f, set)
	if err != nil {
		return nil, err
	}
	first := &intake{next: next, format: f.Type().String(), now: set.Env.Now, budget: set.Budget}
	inner, err := f.CreateTraces(context.Background(), receiver.Settings{
		ID: id, TelemetrySettings: tel, BuildInfo: buildInfo(set),
	}, c.value, first)
	if err != nil {
		return nil, err
	}
	return &tracesReceiver{lifecycle{inner, set.Report, set.Logger}}, nil
}

// intake passes received spans to the pipeline.
type intake struct {
	next   pipeline.Consumer
	format string
	now    func() time.Time
	budget *pipeline.Budget
}

// Capabilities says that the intake keeps the spans, so that the receiver must not use them
// afterwards.
func (*intake) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

// ConsumeTraces passes the spans of one request on, within the budget for requests in flight.
func (i *intake) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	b := otlpdata.FromTraces(td, otlpdata.Meta{Format: i.format, Transport: "unknown", Received: i.now()})
	size := int64(b.Size())
	if limit := i.budget.Limit(); limit > 0 && size > limit {
		return forReceiver(&otlpdata.LimitError{Limit: "bytes of requests in flight", Max: int(limit), TooLarge: true})
	}
	reservation, err := i.budget.Reserve(size)
	if err != nil {
		return err
	}
	defer reservation.Release()
	return forReceiver(i.next.Consume(ctx, b))
}

// forReceiver returns an error with the Collector's mark for errors that clients must not retry.
func forReceiver(err error) error {
	var partial *pipeline.Partial
	if err != nil && (errors.As(err, &partial) || pipeline.IsPermanent(err)) {
		return consumererror.NewPermanent(err)
	}
	return err
}
