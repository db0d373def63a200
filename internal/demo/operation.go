package demo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
)

// propagator carries trace contexts between services.
var propagator propagation.TextMapPropagator = propagation.TraceContext{}

const (
	// networkTime is the median time that a message takes between two hosts.
	networkTime = 400 * time.Microsecond
	// spread is the standard deviation of the logarithm of durations.
	spread = 0.35
	// longest is the maximum factor by which a duration exceeds its median.
	longest = 4
)

// request is the processing of one request or message by all services that take part.
type request struct {
	shop   *Shop
	random *rand.Rand
	user   string
	tier   string
}

// operation is an instance's work for a request: a span that has not ended, and its virtual time.
type operation struct {
	*request
	ctx  context.Context // with the span
	span trace.Span
	at   *instance
	now  time.Time
}

// handler does the work of an operation, whose span ends afterwards.
type handler func(*operation) error

// failure is the error of an operation.
type failure struct {
	kind     string // type of the exception
	message  string
	stack    string
	status   int  // of the HTTP response
	recorded bool // a span has the exception
}

// Error returns the message.
func (f *failure) Error() string { return f.message }

// chance returns true for a share of the calls.
func (r *request) chance(share float64) bool { return r.random.Float64() < share }

// about returns a duration that varies around its median.
func (r *request) about(median time.Duration) time.Duration {
	return time.Duration(float64(median) * min(longest, math.Exp(spread*r.random.NormFloat64())))
}

// wait lets about the median time pass.
func (o *operation) wait(median time.Duration) { o.now = o.now.Add(o.about(median)) }

// start starts a span at an instance.
func (r *request) start(ctx context.Context, at *instance, now time.Time, name string, kind trace.SpanKind,
	attributes []attribute.KeyValue, links ...trace.Link,
) *operation {
	ctx, span := at.tracer.Start(ctx, name, trace.WithTimestamp(now), trace.WithSpanKind(kind), trace.WithAttributes(attributes...),
		trace.WithLinks(links...))
	return &operation{r, ctx, span, at, now}
}

// child does work of the same instance in a separate span.
func (o *operation) child(name string, kind trace.SpanKind, attributes []attribute.KeyValue, do handler) error {
	c := o.start(o.ctx, o.at, o.now, name, kind, attributes)
	err := do(c)
	c.end(err)
	o.now = c.now
	return err
}

// step does work that cannot fail in a separate span.
func (o *operation) step(name string, kind trace.SpanKind, attributes []attribute.KeyValue, do func(*operation)) {
	o.child(name, kind, attributes, func(c *operation) error { //nolint:errcheck // nil
		do(c)
		return nil
	})
}

// end ends the span. The first span with a failure records the exception.
func (o *operation) end(err error) {
	if f := (*failure)(nil); errors.As(err, &f) {
		o.span.SetStatus(codes.Error, f.message)
		o.span.SetAttributes(semconv.ErrorTypeKey.String(f.kind))
		if !f.recorded {
			o.span.AddEvent("exception", trace.WithTimestamp(o.now), trace.WithAttributes(
				semconv.ExceptionType(f.kind), semconv.ExceptionMessage(f.message), semconv.ExceptionStacktrace(f.stack)))
			f.recorded = true
		}
	}
	o.span.End(trace.WithTimestamp(o.now))
}

// together does several things at the same time, and returns the first error.
func (o *operation) together(all ...handler) (first error) {
	begin, end := o.now, o.now
	for _, do := range all {
		o.now = begin
		if err := do(o); first == nil {
			first = err
		}
		if o.now.After(end) {
			end = o.now
		}
	}
	o.now = end
	return first
}

// call is a call of another service, with a span at each end.
type call struct {
	service            string
	client, server     string // names of the spans
	asClient, asServer []attribute.KeyValue
	status             func(error) attribute.KeyValue // of both spans, for the error of the called service
}

// remote makes a call. The called instance finds the context of the caller in the headers.
func (o *operation) remote(l call, do handler) error {
	return o.child(l.client, trace.SpanKindClient, l.asClient, func(c *operation) error {
		headers := propagation.MapCarrier{}
		propagator.Inject(c.ctx, headers)
		c.wait(networkTime)
		ctx := propagator.Extract(context.Background(), headers)
		s := c.start(ctx, c.shop.pick(l.service, c.request, c.now), c.now, l.server, trace.SpanKindServer, l.asServer)
		err := do(s)
		status := l.status(err)
		s.span.SetAttributes(status)
		s.end(err)
		c.now = s.now
		c.wait(networkTime)
		c.span.SetAttributes(status)
		return err
	})
}

// http calls another service over HTTP.
func (o *operation) http(service, method, route, path string, do handler) error {
	common := []attribute.KeyValue{semconv.HTTPRequestMethodKey.String(method), semconv.NetworkProtocolVersion("1.1")}
	common = append(common, semconv.ServerAddress(service))
	return o.remote(call{
		service: service, client: method, server: method + " " + route,
		asClient: append(common[:3:3], semconv.ServerPort(httpPort), semconv.URLFull(fmt.Sprintf("http://%s:%d%s", service, httpPort, path))),
		asServer: append(common[:3:3], semconv.HTTPRoute(route), semconv.URLPath(path), semconv.URLScheme("http")),
		status:   func(err error) attribute.KeyValue { return semconv.HTTPResponseStatusCode(statusOf(err)) },
	}, do)
}

// statusOf returns the status of the HTTP response for an error.
func statusOf(err error) int {
	if f := (*failure)(nil); errors.As(err, &f) {
		return f.status
	}
	return http.StatusOK
}

// rpc calls another service over gRPC.
func (o *operation) rpc(service, api, method string, do handler) error {
	name := "shop." + api + "/" + method
	common := []attribute.KeyValue{semconv.RPCSystemGRPC, semconv.RPCService("shop." + api), semconv.RPCMethod(method),
		semconv.ServerAddress(service)}
	return o.remote(call{
		service: service, client: name, server: name,
		asClient: append(common[:4:4], semconv.ServerPort(grpcPort)), asServer: common,
		status: func(err error) attribute.KeyValue { return semconv.RPCGRPCStatusCodeKey.Int(codeOf(err)) },
	}, do)
}

// codeOf returns the status code of the gRPC response for an error.
func codeOf(err error) int {
	const (
		ok, deadlineExceeded, internal, unavailable = 0, 4, 13, 14
	)
	switch statusOf(err) {
	case http.StatusOK:
		return ok
	case http.StatusGatewayTimeout:
		return deadlineExceeded
	case http.StatusServiceUnavailable, http.StatusBadGateway:
		return unavailable
	}
	return internal
}

// Ports of the services.
const (
	httpPort = 8080
	grpcPort = 9000
)
