package server

import (
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
)

// traceResponse is the W3C Trace Context header with the ids of the request's span.
const traceResponse = "Traceresponse"

// maxTracedText is the maximum number of bytes of a part of a request line in a span.
const maxTracedText = 1024

// tracedText returns a part of a request line for a span: cut, in valid UTF-8, and without keeping
// the rest of the line in memory.
func tracedText(part string) string {
	return strings.ToValidUTF8(strings.Clone(part[:min(len(part), maxTracedText)]), "\uFFFD")
}

// beginTrace starts the trace of a request if self-tracing is on.
func (s *HTTP) beginTrace(w *responseTracker, r *http.Request, start time.Time) *http.Request {
	if !s.set.Tracer.On() {
		return r
	}
	attrs := []attribute.KeyValue{
		attribute.String("http.request.method", tracedText(r.Method)), attribute.String("url.path", tracedText(r.URL.EscapedPath())),
		attribute.String("network.protocol.version", tracedText(r.Proto[len("HTTP/"):])),
	}
	if q := r.URL.RawQuery; q != "" {
		attrs = append(attrs, attribute.String("url.query", tracedText(q)))
	}
	ctx, trace := s.set.Tracer.Request(r.Context(), methodLabel(r.Method), start, propagation.HeaderCarrier(r.Header), attrs...)
	if w.trace = trace; trace == nil {
		return r
	}
	return r.WithContext(ctx)
}

// setTraceResponse adds the header with the ids of the span. Scripts of other origins that may read
// the response may also read this header.
func (t *responseTracker) setTraceResponse() {
	if t.trace == nil {
		return
	}
	if ids := t.trace.Response(); ids != "" {
		t.Header().Set(traceResponse, ids)
		if t.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Header().Add("Access-Control-Expose-Headers", traceResponse)
		}
	}
}

// endTrace ends the trace of a request after its response.
func (t *responseTracker) endTrace(r *http.Request) {
	if t.trace == nil {
		return
	}
	name, status, failure := methodLabel(r.Method), t.status, ""
	if status == 0 {
		status = http.StatusOK
	}
	attrs := []attribute.KeyValue{attribute.Int("http.response.status_code", status)}
	if route := routeOf(r); route != "" {
		name += " " + route
		attrs = append(attrs, attribute.String("http.route", route))
	}
	if status >= http.StatusInternalServerError {
		failure = http.StatusText(status)
	}
	t.trace.End(name, failure, attrs...)
}

// routeOf returns the path of the mux pattern that matched a request, or "".
func routeOf(r *http.Request) string {
	_, route, found := strings.Cut(r.Pattern, " ")
	if !found {
		route = r.Pattern
	}
	return route
}

// markRead records when the body of a request was read.
func (b *body) markRead() {
	if b.trace != nil {
		b.trace.MarkRead(b.server.set.Env.Now())
	}
}
