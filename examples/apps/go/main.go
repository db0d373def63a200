// The program shop takes orders and sends a trace of each with the OpenTelemetry SDK. README.md in
// the folder above says how to run it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// flushTime is the maximum time to send the last spans.
const flushTime = 10 * time.Second

func main() {
	orders := flag.Int("orders", 1, "Number of orders.")
	pause := flag.Duration("pause", 0, "Time between orders.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *orders, *pause); err != nil {
		fmt.Fprintln(os.Stderr, "shop:", err)
		os.Exit(1)
	}
}

// run takes orders until there were enough or ctx ends.
func run(ctx context.Context, orders int, pause time.Duration) error {
	provider, err := newProvider(ctx)
	if err != nil {
		return err
	}
	otel.SetTracerProvider(provider)
	s := shop{provider.Tracer("shop", trace.WithInstrumentationVersion("1.0.0"))}
	for i := 0; i < orders && ctx.Err() == nil; i++ {
		span := s.takeOrder(ctx)
		fmt.Printf("order %d trace %s sampled %t\n", i+1, span.TraceID(), span.IsSampled())
		time.Sleep(pause)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	return provider.Shutdown(ctx)
}

// newProvider returns the SDK. Its exporter reads OTEL_EXPORTER_OTLP_ENDPOINT; the default is
// http://localhost:4318.
func newProvider(ctx context.Context) (*sdktrace.TracerProvider, error) {
	var target []otlptracehttp.Option
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" {
		target = append(target, otlptracehttp.WithInsecure()) // the default of the SDK is https
	}
	exporter, err := otlptracehttp.New(ctx, target...)
	if err != nil {
		return nil, err
	}
	res, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", serviceName), attribute.String("service.version", "1.0.0")), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	options := []sdktrace.TracerProviderOption{sdktrace.WithBatcher(exporter), sdktrace.WithResource(res)}
	sampler, err := remoteSampler()
	if err != nil {
		return nil, err
	}
	if sampler != nil {
		options = append(options, sdktrace.WithSampler(sdktrace.ParentBased(sampler)))
	}
	return sdktrace.NewTracerProvider(options...), nil
}

const serviceName = "shop-go"

// shop takes orders.
type shop struct{ tracer trace.Tracer }

var errDeadlock = errors.New("deadlock detected")

// takeOrder handles a request of a client.
func (s shop) takeOrder(ctx context.Context) trace.SpanContext {
	ctx, span := s.tracer.Start(ctx, "POST /orders", trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", "POST"), attribute.String("http.route", "/orders"),
		attribute.Bool("order.gift", true), attribute.Int("order.count", 2), attribute.Float64("order.total", 12.75),
		attribute.StringSlice("order.items", []string{"book", "pen"}), attribute.Int64Slice("order.quantities", []int64{1, 2}),
		attribute.Float64Slice("order.prices", []float64{9.5, 3.25}), attribute.BoolSlice("order.in_stock", []bool{true, false}),
	))
	defer span.End()
	if err := s.insert(ctx); err != nil {
		span.AddEvent("retry", trace.WithAttributes(attribute.Int("retry.attempt", 1)))
	}
	s.publish(ctx)
	span.SetAttributes(attribute.Int("http.response.status_code", 202))
	return span.SpanContext()
}

// insert calls the database, which refuses the statement.
func (s shop) insert(ctx context.Context) error {
	_, span := s.tracer.Start(ctx, "INSERT orders", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("db.system.name", "postgresql"), attribute.String("db.query.text", "INSERT INTO orders VALUES (?, ?)")))
	defer span.End()
	span.RecordError(errDeadlock)
	span.SetStatus(codes.Error, errDeadlock.Error())
	return errDeadlock
}

// publish sends a message.
func (s shop) publish(ctx context.Context) {
	_, span := s.tracer.Start(ctx, "send orders", trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		attribute.String("messaging.system", "kafka"), attribute.String("messaging.destination.name", "orders"),
		attribute.Int("messaging.message.body.size", 512)))
	span.SetStatus(codes.Ok, "")
	span.End()
}
