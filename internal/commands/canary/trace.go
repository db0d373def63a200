package canary

import (
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// trace is one generated trace. The first span is the root; parents come before their children.
type trace struct {
	id     otlpdata.TraceID
	spans  []span
	lookup attribute // attribute of the root for searches
}

// span is one span. Times are nanoseconds since the Unix epoch.
type span struct {
	service     *service
	id, parent  otlpdata.SpanID
	name, state string
	kind        int32
	status      int32
	message     string
	flags       uint32
	start, end  uint64
	attributes  []attribute
	events      []event
	links       []link
}

type event struct {
	at         uint64
	name       string
	attributes []attribute
}

type link struct {
	traceID otlpdata.TraceID
	spanID  otlpdata.SpanID
}

// service is what all spans of a service have in common.
type service struct {
	name           string
	scope, version string
	attributes     []attribute
}

// services are the services of every trace. Their names share a prefix, to distinguish them from an
// application's.
var services = []service{
	{name: rootService, scope: "canary/http", version: "1.2.3", attributes: []attribute{
		text("host.name", "canary-host"), integer("process.pid", 4711), boolean("canary", true)}},
	{name: "canary-cart", scope: "canary/rpc", attributes: []attribute{text("deployment", "prod \"eu\""), double("weight", 0.25)}},
	{name: "canary-bücher", scope: "canary/sql", version: "0", attributes: []attribute{
		binaryAttribute("key", "\x00\xff"), text("db", "書籍")}},
	{name: "canary-mail"},
}

// The service and the operation of the root.
const (
	rootService   = "canary-frontend"
	rootOperation = "GET /canary ☂?a=b&c"
)

// step is the constant part of a span.
type step struct {
	service, parent int // indexes; the root's parent is -1
	kind            int32
	name            string
}

// steps cover every kind of span, calls between services, and a received message.
var steps = []step{
	{0, -1, otlpdata.KindServer, rootOperation},
	{0, 0, otlpdata.KindClient, "Cart.Load"},
	{1, 1, otlpdata.KindServer, "Cart.Load"},
	{1, 2, otlpdata.KindInternal, "total"},
	{1, 2, otlpdata.KindClient, `SELECT "titles"`},
	{2, 4, otlpdata.KindServer, `SELECT "titles"`},
	{0, 0, otlpdata.KindProducer, "mail ✉ send"},
	{3, 6, otlpdata.KindConsumer, "mail ✉ receive"},
	{3, 7, otlpdata.KindUnspecified, "render"},
}

// encode returns the trace as an ExportTraceServiceRequest.
func (t *trace) encode() []byte {
	var b otlpdata.Builder
	for i := range services {
		svc := &services[i]
		b.Resource(append(sent(svc.attributes), otlpdata.KeyValue{Key: "service.name", Value: otlpdata.StringValue(svc.name)}))
		b.Scope(svc.scope, svc.version, nil)
		for j := range t.spans {
			if s := &t.spans[j]; s.service == svc {
				b.Span(s.encodable(t.id))
			}
		}
	}
	return b.Bytes()
}

func (s *span) encodable(id otlpdata.TraceID) *otlpdata.Span {
	out := &otlpdata.Span{
		TraceID: id, SpanID: s.id, ParentID: s.parent, TraceState: s.state, Name: s.name, Kind: s.kind,
		StatusCode: s.status, StatusMessage: s.message, Flags: s.flags, Start: s.start, End: s.end, Attributes: sent(s.attributes),
	}
	for _, e := range s.events {
		out.Events = append(out.Events, otlpdata.Event{Time: e.at, Name: e.name, Attributes: sent(e.attributes)})
	}
	for _, l := range s.links {
		out.Links = append(out.Links, otlpdata.Link{TraceID: l.traceID, SpanID: l.spanID})
	}
	return out
}

func sent(attributes []attribute) []otlpdata.KeyValue {
	out := make([]otlpdata.KeyValue, len(attributes), len(attributes)+1)
	for i, a := range attributes {
		out[i] = a.sent
	}
	return out
}
