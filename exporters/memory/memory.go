// Package memory is the exporter "memory": a store of bounded size that lives and dies with the process.
//
// A span is kept as the bytes it came in, in one block per trace and request, and stands in sorted lists of rows: all spans, those of a
// service, of an operation, of a resource, those with an error, and those with an attribute value. A search walks the shortest lists
// that hold everything it can find, newest first, decodes each candidate and asks tracestore.Match. What is stored never changes, so a
// reader holds the lock only while it takes the next rows of a list, and reads them without it.
//
// Files: stage.go reads a request, tenant.go and index.go keep spans, list.go is the sorted list, evict.go makes room, plan.go and
// search.go find, read.go gives traces back, catalog.go lists names, dependencies.go and metrics.go count calls, aggregate.go describes spans,
// delete.go deletes on request, sampling.go keeps what adaptive sampling learns.
package memory

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/sampling"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Config is the configuration of the exporter.
type Config struct {
	MaxBytes    pipeline.ByteSize `yaml:"max_bytes" doc:"Memory for spans and their indexes, of all tenants together, above which the oldest traces go; the process needs about twice as much."`
	AllowDelete bool              `yaml:"allow_delete" doc:"Whether operators may delete traces, services and ranges of time, through the admin extension."`
}

// The least that MaxBytes may be: room for the indexes of a few spans.
const minBytes = 1 << 20

// Validate checks what the types cannot.
func (c *Config) Validate() error {
	if c.MaxBytes < minBytes {
		return pipeline.BadKey("max_bytes", "must be at least %s", pipeline.ByteSize(minBytes))
	}
	return nil
}

// defaults allows 256 MiB: some 300,000 spans, and with what the garbage collector needs on top still small for a laptop or a container.
func defaults() Config { return Config{MaxBytes: 256 << 20} }

// Factory makes exporters of type "memory".
func Factory() pipeline.Factory {
	return pipeline.Exporter("memory", defaults, newExporter).
		Doc("Stores spans in memory, for trying things out and for tests; the oldest traces make room for new ones.")
}

// exporter is the store. Tenants have indexes of their own and share the bytes: one that floods the store drives out the others' traces,
// oldest first, whoever owns them.
type exporter struct {
	tracestore.Hub
	*sampling.Memory
	maxBytes    int64
	allowDelete bool
	log         *zap.Logger
	seed        maphash.Seed
	stages      sync.Pool // of *stage
	metrics     *metrics

	mu             sync.RWMutex // guards all below, lists and maps of tenants included; not what rows and origins hold
	tenants        map[string]*tenant
	oldest, newest *trace // all traces by creation, through trace.next
	seq            uint64 // of the latest row; readers leave out rows behind the seq they began with
	usage          usage
	dropper        dropper
}

// usage is what is stored now. Bytes are an estimate, see cost.go.
type usage struct {
	bytes         int64
	spans, traces int
}

var (
	_ pipeline.DurabilityReporter = (*exporter)(nil)
	_ pipeline.MemoryUser         = (*exporter)(nil)
	_ tracestore.Reader           = (*exporter)(nil)
	_ tracestore.Catalog          = (*exporter)(nil)
	_ tracestore.AttributeCatalog = (*exporter)(nil)
	_ tracestore.Dependencies     = (*exporter)(nil)
	_ tracestore.Peers            = (*exporter)(nil)
	_ tracestore.Follower         = (*exporter)(nil)
	_ tracestore.Metrics          = (*exporter)(nil)
	_ tracestore.Aggregator       = (*exporter)(nil)
)

func newExporter(set pipeline.Settings, c Config) (*exporter, error) {
	m, err := newMetrics(set.Metrics)
	if err != nil {
		return nil, err
	}
	e := &exporter{Memory: sampling.NewMemory(set.Env.Now), maxBytes: int64(c.MaxBytes), allowDelete: c.AllowDelete, log: set.Logger, seed: maphash.MakeSeed(), metrics: m, tenants: make(map[string]*tenant)}
	e.dropper.terms.seed = e.seed
	e.stages.New = func() any { return newStage(e.seed) }
	return e, nil
}

// Keeps tells that an acknowledged span is lost with the process.
func (e *exporter) Durability() pipeline.Durability { return pipeline.DurabilityMemory }

// MaxMemory returns max_bytes and a quarter, since what max_bytes counts is an estimate and one request may be over it for a moment.
func (e *exporter) MaxMemory() int64 { return e.maxBytes / 4 * 5 }

// Consume stores all spans of b, or none. To get back below the limit it then drops the traces that were created first, which counts
// them as evicted; an old trace that goes takes along what b had of it. A request that alone exceeds the limit is refused for good.
func (e *exporter) Consume(ctx context.Context, b *otlpdata.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	chunks, err := b.Chunks()
	if err != nil {
		return err
	}
	st := e.stages.Get().(*stage)
	defer func() {
		if st.reset() {
			e.stages.Put(st)
		}
	}()
	for _, s := range chunks {
		if err := otlpdata.Walk(s, st); err != nil {
			return pipeline.Permanent(fmt.Errorf("reading spans: %w", err))
		}
	}
	if need := st.cost(); need > e.maxBytes {
		return pipeline.Permanent(fmt.Errorf("%w: it needs up to %d bytes, max_bytes is %d", errTooLarge, need, e.maxBytes))
	}
	e.store(b.Meta().Tenant, st)
	e.Publish(b)
	return nil
}

// store makes a request visible, and room for it.
func (e *exporter) store(tenant string, st *stage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.insert(tenant, st)
	e.evict()
	e.metrics.show(e.usage)
}

var errTooLarge = errors.New("the request does not fit into the memory store")

// metrics shows what the store holds and what it dropped.
type metrics struct {
	evictedSpans, evictedTraces prometheus.Counter
	spans, traces, bytes        prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "tracing_memory_" + name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "tracing_memory_" + name, Help: help})
	}
	m := &metrics{
		evictedSpans:  counter("evicted_spans_total", "Spans dropped from the memory store to make room."),
		evictedTraces: counter("evicted_traces_total", "Traces dropped from the memory store to make room."),
		spans:         gauge("spans", "Spans in the memory store."),
		traces:        gauge("traces", "Traces in the memory store."),
		bytes:         gauge("bytes", "Memory used by the memory store for spans and indexes, estimated."),
	}
	for _, c := range []prometheus.Collector{m.evictedSpans, m.evictedTraces, m.spans, m.traces, m.bytes} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) show(u usage) {
	m.spans.Set(float64(u.spans))
	m.traces.Set(float64(u.traces))
	m.bytes.Set(float64(u.bytes))
}
