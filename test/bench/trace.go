package bench

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// builder builds one trace. It starts with the root span, and adds calls below random spans until
// the trace has the drawn size.
type builder struct {
	*Dataset
	*rand.Rand
	spans []Span
	open  []parent // spans that may get children
	size  int      // number of spans of the complete trace
}

// parent is a span that may get children, and the service that creates them.
type parent struct {
	span    int // index in builder.spans
	service int
}

// minParent is the minimum duration of a span with children in nanoseconds. It ensures that
// children last at least some microseconds.
const minParent = 20_000

// Services of the tiers firstDatabaseTier to queueTier have a database. Services of queueTier
// consume messages.
const (
	firstDatabaseTier = 2
	queueTier         = 3
)

// Trace returns the spans of trace i, parents before children. A span lies within the time of its
// parent.
func (d *Dataset) Trace(i int) []Span {
	b := &builder{Dataset: d, Rand: d.random(i)}
	b.size = traceSize(b.Rand)
	b.spans = make([]Span, 0, b.size)
	b.root(i)
	for len(b.spans) < b.size {
		b.grow()
	}
	return b.spans
}

func (b *builder) root(i int) {
	gateway := b.IntN(len(tiers()[0]))
	jitter := b.Int64N(int64(time.Second / TracesPerSecond))
	start := uint64(b.start.UnixNano() + int64(i)*int64(time.Second/TracesPerSecond) + jitter)
	length := 5e6 * math.Pow(400, b.Float64()) // 5 ms to 2 s
	var id otlpdata.TraceID
	binary.BigEndian.PutUint64(id[:], b.Uint64())
	binary.BigEndian.PutUint64(id[8:], b.Uint64())
	b.spans = append(b.spans, Span{Resource: b.instance(gateway), Span: otlpdata.Span{TraceID: id, SpanID: b.spanID(),
		Start: start, End: start + uint64(length), Flags: 1}})
	b.finish(0, gateway, otlpdata.KindServer, b.operation(gateway), httpScope)
	b.open = append(b.open, parent{0, gateway})
}

func (b *builder) spanID() (id otlpdata.SpanID) {
	binary.BigEndian.PutUint64(id[:], b.Uint64()|1)
	return id
}

func (b *builder) instance(service int) int {
	of := b.services[service].instances
	return of[b.IntN(len(of))]
}

func (b *builder) operation(service int) string {
	of := b.services[service].operations
	return of[b.IntN(len(of))]
}

// grow adds a span below a random open span, or two spans for a call or message.
func (b *builder) grow() {
	p := b.open[b.IntN(len(b.open))]
	s := &b.services[p.service]
	missing := b.size - len(b.spans)
	switch n := b.IntN(100); {
	case n < 62 && missing >= 2 && len(s.callees) > 0:
		callee := s.callees[b.IntN(len(s.callees))]
		if n < 12 && b.services[callee].tier == queueTier {
			b.message(p, callee)
			return
		}
		b.call(p, callee)
	case n < 80 && s.tier >= firstDatabaseTier && s.tier <= queueTier:
		verbs := []string{"SELECT", "INSERT", "UPDATE"}
		b.child(p, otlpdata.KindClient, verbs[b.IntN(len(verbs))]+" "+s.noun+"s", databaseScope)
	case n < 90:
		verbs := []string{"GET", "SET"}
		b.child(p, otlpdata.KindClient, "cache "+verbs[b.IntN(len(verbs))], cacheScope)
	default:
		i := b.child(p, otlpdata.KindInternal, "prepare "+s.noun, applicationScope)
		b.mayOpen(i, p.service)
	}
}

// call adds the client span and the server span of a request.
func (b *builder) call(p parent, callee int) {
	scope := rpcScope
	if b.services[callee].tier < 2 {
		scope = httpScope
	}
	name := b.operation(callee)
	client := b.child(p, otlpdata.KindClient, name, scope)
	server := b.child(parent{client, callee}, otlpdata.KindServer, name, scope)
	b.mayOpen(server, callee)
}

// message adds a producer span and a consumer span that links to it.
func (b *builder) message(p parent, consumer int) {
	topic := b.services[consumer].name + ".events"
	sent := b.child(p, otlpdata.KindProducer, "send "+topic, queueScope)
	got := b.child(parent{sent, consumer}, otlpdata.KindConsumer, "process "+topic, queueScope)
	b.spans[got].Links = []otlpdata.Link{{TraceID: b.spans[sent].TraceID, SpanID: b.spans[sent].SpanID, Flags: 1}}
	b.mayOpen(got, consumer)
}

// mayOpen lets a span have children of a service if it is long enough.
func (b *builder) mayOpen(span, service int) {
	if s := &b.spans[span]; s.End-s.Start >= minParent {
		b.open = append(b.open, parent{span, service})
	}
}

// child adds a span of p.service within the time of p.span, and returns its index.
func (b *builder) child(p parent, kind int32, name string, scope int) int {
	above := &b.spans[p.span]
	length := float64(above.End - above.Start)
	start := above.Start + uint64(length*0.5*b.Float64())
	end := start + uint64(float64(above.End-start)*(0.2+0.7*b.Float64()))
	resource := above.Resource
	if b.resources[resource].Service != b.services[p.service].name {
		resource = b.instance(p.service)
	}
	b.spans = append(b.spans, Span{Resource: resource, Span: otlpdata.Span{TraceID: above.TraceID, SpanID: b.spanID(),
		ParentID: above.SpanID, Start: start, End: end, Flags: 1}})
	i := len(b.spans) - 1
	b.finish(i, p.service, kind, name, scope)
	return i
}
