package otlpdata

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// Meta says where a request came from. It travels with the spans, so that nothing about them lives in a context only.
type Meta struct {
	// Tenant owns the spans; "" is the default tenant.
	Tenant string
	// Format is the wire format as metrics name it: "otlp", "tracing", "zipkin".
	Format string
	// Transport is how the request came: "grpc", "http", "udp".
	Transport string
	// Received is when the request had arrived.
	Received time.Time
}

// Batch is one trace request. It is immutable and safe for concurrent use: branches, retries and queues share one value. Both forms of
// the data are derived at most once.
type Batch struct {
	meta     Meta
	services []ServiceCount
	spans    int
	size     int // bytes of the encoded form; -1: not known yet
	walk     int // bytes, see WalkMemory

	mu      sync.Mutex // guards the form that is derived
	encoded [][]byte
	decoded ptrace.Traces
	hasObjs bool
}

// ServiceCount says how many spans of one service a Batch holds. Spans counts all, Roots those without a parent. Of both, Debug counts
// those with the flag FlagDebug.
type ServiceCount struct {
	Service string
	Spans   int
	Roots   int
	Debug   struct{ Spans, Roots int }
}

// Add counts one more span.
func (c *ServiceCount) Add(root, debug bool) {
	c.Spans++
	if root {
		c.Roots++
	}
	if !debug {
		return
	}
	c.Debug.Spans++
	if root {
		c.Debug.Roots++
	}
}

// FromOTLP makes a Batch of an encoded ExportTraceServiceRequest. The Batch keeps b, which must not be changed any more. The error is a
// *[LimitError] when the request exceeds lim, and otherwise says that b is not such a message; it is permanent in both cases.
func FromOTLP(b []byte, m Meta, lim Limits) (*Batch, error) {
	var c counter
	memory, err := walk(b, &c, lim, true)
	if err != nil {
		return nil, err
	}
	return &Batch{meta: m, encoded: [][]byte{b}, services: c.services, spans: c.spans, size: len(b), walk: memory}, nil
}

// FromTraces makes a Batch of pdata objects, which the Batch owns from now on.
func FromTraces(td ptrace.Traces, m Meta) *Batch {
	b := &Batch{meta: m, decoded: td, hasObjs: true, size: -1}
	var c counter
	for i := range td.ResourceSpans().Len() {
		rs := td.ResourceSpans().At(i)
		r := Resource{Service: serviceOf(rs.Resource().Attributes())}
		c.Resource(&r) //nolint:errcheck // never fails
		for j := range rs.ScopeSpans().Len() {
			spans := rs.ScopeSpans().At(j).Spans()
			for k := range spans.Len() {
				c.add(spans.At(k).ParentSpanID().IsEmpty(), flagsOf(spans.At(k))&FlagDebug != 0)
			}
		}
	}
	b.services, b.spans = c.services, c.spans
	return b
}

// Concat joins batches of one tenant into one. It copies no bytes: the encoded form keeps the segments of its parts, which together are
// one valid request. Format, transport and time are the first part's. It fails for no parts and for different tenants.
func Concat(parts ...*Batch) (*Batch, error) {
	if len(parts) == 0 {
		return nil, errors.New("otlpdata: Concat of no batches")
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	out := &Batch{meta: parts[0].meta}
	var c counter
	for _, p := range parts {
		if p.meta.Tenant != out.meta.Tenant {
			return nil, fmt.Errorf("otlpdata: Concat of tenants %q and %q", out.meta.Tenant, p.meta.Tenant)
		}
		segs, err := p.Segments()
		if err != nil {
			return nil, err
		}
		out.encoded = append(out.encoded, segs...)
		out.spans += p.spans
		out.walk = max(out.walk, p.walk)
		for _, s := range p.services {
			c.merge(s)
		}
	}
	out.services = c.services
	for _, s := range out.encoded {
		out.size += len(s)
	}
	return out, nil
}

// Meta returns where the request came from.
func (b *Batch) Meta() Meta { return b.meta }

// Len returns the number of spans.
func (b *Batch) Len() int { return b.spans }

// Services returns the number of spans by service, in order of first appearance. The caller must not change it.
func (b *Batch) Services() []ServiceCount { return b.services }

// Size returns the number of bytes of the encoded form, which is also the measure for budgets and queues.
func (b *Batch) Size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.size < 0 {
		b.size = (&ptrace.ProtoMarshaler{}).TracesSize(b.decoded)
	}
	return b.size
}

// WalkMemory returns how many bytes a [Walk] of the segments allocates at most for lists of attributes, events and links. It is small for
// what applications send, and up to fifty times the Size for what attackers do: an empty attribute takes two bytes. Who lets many such
// walks happen at once charges it to a budget. It is known of batches made by [FromOTLP] and [FromJSON], and 0 of others.
func (b *Batch) WalkMemory() int { return b.walk }

// Segments returns the encoded form: one or more encoded ExportTraceServiceRequests, whose concatenation is one, too. Nobody may write
// to the bytes.
func (b *Batch) Segments() ([][]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.encoded == nil {
		enc, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(b.decoded)
		if err != nil {
			return nil, fmt.Errorf("encoding spans: %w", err)
		}
		b.encoded, b.size = [][]byte{enc}, len(enc)
	}
	return b.encoded, nil
}

// Traces returns the spans as pdata objects, which the caller must not change; see [Batch.Edit].
func (b *Batch) Traces() (ptrace.Traces, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.hasObjs {
		td, err := decode(b.encoded)
		if err != nil {
			return ptrace.Traces{}, err
		}
		b.decoded, b.hasObjs = td, true
	}
	return b.decoded, nil
}

// Edit returns a new Batch with what change made of a copy of the spans. An error of change is returned as it is.
func (b *Batch) Edit(change func(ptrace.Traces) error) (*Batch, error) {
	td, err := b.copyTraces()
	if err != nil {
		return nil, err
	}
	if err := change(td); err != nil {
		return nil, err
	}
	return FromTraces(td, b.meta), nil
}

func (b *Batch) copyTraces() (ptrace.Traces, error) {
	b.mu.Lock()
	encoded, objs, has := b.encoded, b.decoded, b.hasObjs
	b.mu.Unlock()
	if !has {
		return decode(encoded)
	}
	td := ptrace.NewTraces()
	objs.CopyTo(td)
	return td, nil
}

func decode(segments [][]byte) (ptrace.Traces, error) {
	all := ptrace.NewTraces()
	for i, s := range segments {
		req := ptraceotlp.NewExportRequest()
		if err := req.UnmarshalProto(s); err != nil {
			return ptrace.Traces{}, fmt.Errorf("decoding spans: %w", err)
		}
		if i == 0 {
			all = req.Traces()
			continue
		}
		req.Traces().ResourceSpans().MoveAndAppendTo(all.ResourceSpans())
	}
	return all, nil
}
