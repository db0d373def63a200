package bench

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// builder makes one trace: it begins with a root and lets random spans call others until the trace has its size.
type builder struct {
	*Dataset
	*rand.Rand
	spans []Span
	open  []parent // spans that may get children
	size  int
}

// parent is a span whose service does something below it.
type parent struct {
	span    int // index in builder.spans
	service int
}

// leastParent is the shortest span that gets children, in nanoseconds; theirs are microseconds then.
const leastParent = 20_000

// Services from firstDatabaseTier to queueTier own a database; those of queueTier take messages.
const (
	firstDatabaseTier = 2
	queueTier         = 3
)

// Trace returns the spans of trace i, parents before children. All times lie within those of the parent.
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

// grow adds a span below an open one, or two where one side of a call waits for the other.
func (b *builder) grow() {
	p := b.open[b.IntN(len(b.open))]
	s := &b.services[p.service]
	room := b.size - len(b.spans)
	switch n := b.IntN(100); {
	case n < 62 && room >= 2 && len(s.callees) > 0:
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

// call adds the client's and the server's side of a request.
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

// message adds a sent message and its processing, which links back to it.
func (b *builder) message(p parent, consumer int) {
	topic := b.services[consumer].name + ".events"
	sent := b.child(p, otlpdata.KindProducer, "send "+topic, queueScope)
	got := b.child(parent{sent, consumer}, otlpdata.KindConsumer, "process "+topic, queueScope)
	b.spans[got].Links = []otlpdata.Link{{TraceID: b.spans[sent].TraceID, SpanID: b.spans[sent].SpanID, Flags: 1}}
	b.mayOpen(got, consumer)
}

func (b *builder) mayOpen(span, service int) {
	if s := &b.spans[span]; s.End-s.Start >= leastParent {
		b.open = append(b.open, parent{span, service})
	}
}

// child adds a span of p's service within the time of p's span, and returns its index.
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
