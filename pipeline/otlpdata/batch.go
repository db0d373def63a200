package otlpdata

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// Meta is the origin of a request. It travels with the spans, so that none of their properties
// exists only in a context.
type Meta struct {
	// Signal is what the request contains.
	Signal Signal
	// Tenant is the owner of the spans. "" is the default tenant.
	Tenant string
	// Format is the name of the wire format as in metrics: "otlp", "tracing" or "zipkin".
	Format string
	// Transport is "grpc", "http" or "udp".
	Transport string
	// Received is the time at which the request was complete.
	Received time.Time
	// Metadata are the headers of the request that its receiver keeps. Sending queues drop them.
	Metadata Metadata
}

// Batch is one request with spans or, with [SignalLogs], log records. What is said of spans applies
// to log records, too, except in methods that visit or return spans. A Batch is immutable and safe
// for concurrent use: branches, retries and queues share one value. Each form of the data is
// derived at most once.
type Batch struct {
	meta     Meta
	services []ServiceCount
	spans    int
	size     int // bytes of the encoded form; -1 until it is known
	walk     int // bytes, see WalkMemory

	mu         sync.Mutex // guards size and the fields below
	encoded    [][]byte
	decoded    ptrace.Traces
	hasDecoded bool
}

// ServiceCount is the number of spans of one service in a Batch. Spans counts all spans, Roots the
// spans without a parent. Debug counts the spans and roots that have FlagDebug.
type ServiceCount struct {
	Service string
	Spans   int
	Roots   int
	Debug   struct{ Spans, Roots int }
}

// Add counts one span.
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

// FromOTLP returns a Batch for an encoded ExportTraceServiceRequest or, with [SignalLogs],
// ExportLogsServiceRequest. The Batch keeps b, which must not be modified afterwards. The error is
// a *[LimitError] if the request exceeds lim; any other error means that b is not such a message.
// Both are permanent: resending the same bytes cannot succeed.
func FromOTLP(b []byte, m Meta, lim Limits) (*Batch, error) {
	var c counter
	w := walkers.Get().(*walker)
	defer w.release()
	w.signal = m.Signal
	memory, err := w.walk(b, &c, lim, true)
	if err != nil {
		return nil, err
	}
	return &Batch{meta: m, encoded: [][]byte{b}, services: c.services, spans: c.spans, size: len(b), walk: memory}, nil
}

// FromRequests returns one Batch for several encoded ExportTraceServiceRequests, without copying
// them. It is like [FromOTLP] for each of them, with lim, and [Concat] of the results, but does not
// allocate memory for each request. The Batch keeps requests, which must not be modified
// afterwards. It returns the error of the first invalid request.
func FromRequests(requests [][]byte, m Meta, lim Limits) (*Batch, error) {
	out := &Batch{meta: m, encoded: requests}
	var c counter
	w := walkers.Get().(*walker)
	defer w.release()
	w.signal = m.Signal
	for _, r := range requests {
		memory, err := w.walk(r, &c, lim, true)
		if err != nil {
			return nil, err
		}
		out.size += len(r)
		out.walk = max(out.walk, memory)
	}
	if len(requests) == 0 {
		out.encoded = [][]byte{nil}
	}
	out.services, out.spans = c.services, c.spans
	return out, nil
}

// FromTraces returns a Batch for pdata objects. The Batch takes ownership of td.
func FromTraces(td ptrace.Traces, m Meta) *Batch {
	b := &Batch{meta: m, decoded: td, hasDecoded: true, size: -1}
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

// Concat joins batches of one tenant into one. It copies no bytes: the encoded form keeps the
// chunks of its parts, which together are one valid request. Format, transport and time are taken
// from the first part; metadata is kept if it is the same in all parts. Concat returns an error if
// there are no parts or if their tenants or signals differ.
func Concat(parts ...*Batch) (*Batch, error) {
	if len(parts) == 0 {
		return nil, errors.New("otlpdata: Concat without batches")
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	out := &Batch{meta: parts[0].meta}
	var c counter
	for _, p := range parts {
		if p.meta.Signal != out.meta.Signal {
			return nil, errors.New("otlpdata: Concat of batches with different signals")
		}
		if p.meta.Tenant != out.meta.Tenant {
			return nil, fmt.Errorf("otlpdata: Concat of batches of tenants %q and %q", out.meta.Tenant, p.meta.Tenant)
		}
		if p.meta.Metadata != out.meta.Metadata {
			out.meta.Metadata = Metadata{}
		}
		chunks, err := p.chunks()
		if err != nil {
			return nil, err
		}
		out.encoded = append(out.encoded, chunks...)
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

var errNotSpans = errors.New("BUG: spans of a batch of log records are asked for")

// Meta returns the origin of the request.
func (b *Batch) Meta() Meta { return b.meta }

// Len returns the number of spans or log records.
func (b *Batch) Len() int { return b.spans }

// Services returns the number of spans per service, in order of first appearance. The caller must
// not change the slice.
func (b *Batch) Services() []ServiceCount { return b.services }

// Size returns the size of the encoded form in bytes. Budgets and queues use it.
func (b *Batch) Size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.size < 0 {
		b.size = (&ptrace.ProtoMarshaler{}).TracesSize(b.decoded)
	}
	return b.size
}

// WalkMemory returns the maximum number of bytes that a [Walk] of the chunks allocates for lists
// of attributes, events and links. The number is small for ordinary requests, but can be fifty
// times Size for a hostile one, because an empty attribute takes only two bytes on the wire.
// Callers that run many walks at the same time should charge it to a budget. Only batches made by
// [FromOTLP] and [FromJSON] know the number; others return 0.
func (b *Batch) WalkMemory() int { return b.walk }

// Walk calls v for every resource, scope and span of the batch, which must not have log records;
// see [Walk] for a single chunk. It returns errors of the visitor, and of encoding a batch of
// objects.
func (b *Batch) Walk(v Visitor) error {
	if b.meta.Signal != SignalTraces {
		return errNotSpans
	}
	chunks, err := b.chunks()
	if err != nil {
		return err
	}
	for _, c := range chunks {
		if err := Walk(c, v); err != nil {
			return err
		}
	}
	return nil
}

// Encoded returns the whole batch as one encoded ExportTraceServiceRequest. The bytes must not be
// modified. Each call copies the bytes of a batch of several chunks; see [Batch.Chunks].
func (b *Batch) Encoded() ([]byte, error) {
	chunks, err := b.chunks()
	if err != nil {
		return nil, err
	}
	if len(chunks) == 1 {
		return chunks[0], nil
	}
	return bytes.Join(chunks, nil), nil
}

// Chunks returns the encoded form in pieces, without copying bytes: one or more encoded
// ExportTraceServiceRequests, whose concatenation is also one. A batch from [Concat] has several
// chunks, which together are the batch. The bytes must not be modified. Most callers need
// [Batch.Encoded] or [Batch.Walk] instead.
func (b *Batch) Chunks() (iter.Seq[[]byte], error) {
	chunks, err := b.chunks()
	if err != nil {
		return nil, err
	}
	return slices.Values(chunks), nil
}

func (b *Batch) chunks() ([][]byte, error) {
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

// WithoutObjects returns the batch without the pdata objects that it may hold in addition to its
// encoded form, to save their memory.
func (b *Batch) WithoutObjects() (*Batch, error) {
	chunks, err := b.chunks()
	if err != nil {
		return nil, err
	}
	return &Batch{meta: b.meta, services: b.services, spans: b.spans, size: b.Size(), walk: b.walk, encoded: chunks}, nil
}

// Traces returns the spans as pdata objects. The caller must not modify them; see [Batch.Edit].
func (b *Batch) Traces() (ptrace.Traces, error) {
	if b.meta.Signal != SignalTraces {
		return ptrace.Traces{}, errNotSpans
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.hasDecoded {
		td, err := decode(b.encoded)
		if err != nil {
			return ptrace.Traces{}, err
		}
		b.decoded, b.hasDecoded = td, true
	}
	return b.decoded, nil
}

// Edit returns a new Batch with a copy of the spans to which change was applied. An error of change
// is returned unchanged.
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
	if b.meta.Signal != SignalTraces {
		return ptrace.Traces{}, errNotSpans
	}
	b.mu.Lock()
	encoded, decoded, hasDecoded := b.encoded, b.decoded, b.hasDecoded
	b.mu.Unlock()
	if !hasDecoded {
		return decode(encoded)
	}
	td := ptrace.NewTraces()
	decoded.CopyTo(td)
	return td, nil
}

func decode(chunks [][]byte) (ptrace.Traces, error) {
	all := ptrace.NewTraces()
	for i, s := range chunks {
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
