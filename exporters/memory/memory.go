// Package memory implements the `memory` exporter: a store of limited size in the memory of the
// process.
//
// A span is stored as the bytes in which it arrived, in one block for each trace and request.
// Sorted lists of rows index the spans: all spans, and the spans of each service, operation and
// resource, with an error, and with each attribute value. A search walks the shortest lists that
// contain all possible matches, newest first, decodes each candidate and calls tracestore.Match.
// Stored rows never change, so a reader holds the lock only while it takes the next rows of a list,
// and reads them without the lock.
//
// Files: stage.go reads a request; tenant.go and index.go store and index spans; list.go is the
// sorted list; evict.go drops old traces; plan.go and search.go find traces; read.go returns them;
// catalog.go lists names; dependencies.go and metrics.go count calls; aggregate.go computes
// aggregates; delete.go deletes on request; version.go
// tells whether a trace has changed; sampling.go holds the state of adaptive sampling.
package memory

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/sampling"
	"github.com/tracing-backend/tracing/pipeline/status"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Config is the configuration of the exporter.
type Config struct {
	MaxBytes    pipeline.ByteSize `yaml:"max_bytes" doc:"Maximum memory for spans and indexes of all tenants. Above it, the oldest traces are dropped. The process needs about twice this memory. The default is a fifth of the available memory, at most 256MiB."`
	AllowDelete bool              `yaml:"allow_delete" doc:"Whether the admin extension accepts requests to delete traces, services and time ranges."`
}

// minBytes is the minimum of MaxBytes, which is enough for the indexes of a few spans.
const minBytes = 1 << 20

// Validate checks the values of the configuration.
func (c *Config) Validate() error {
	if c.MaxBytes < minBytes {
		return pipeline.BadKey("max_bytes", "must be at least %s", pipeline.ByteSize(minBytes))
	}
	return nil
}

// The default of max_bytes is 1/memoryPart of the available memory, but at most the maximum, which
// is enough for about 300,000 spans and small enough for a laptop, including the overhead of the
// garbage collector.
const (
	memoryPart         = 5
	maxDefaultMaxBytes = 256 << 20
)

func defaults() Config { return Config{MaxBytes: pipeline.MemoryShare(memoryPart, maxDefaultMaxBytes)} }

// Factory returns the factory of the `memory` exporter.
func Factory() pipeline.Factory {
	return pipeline.Exporter("memory", defaults, newExporter).
		Doc("Stores spans in memory, for demos and tests. The oldest traces are dropped when the store is full.")
}

// exporter is the store. Each tenant has its own indexes, but all tenants share the memory: the
// oldest traces are dropped regardless of tenant.
type exporter struct {
	*sampling.Memory       // implements sampling.Store
	storequery.WholeTraces // implements SelectSpans, FindSpans and Outline of tracestore.Reader

	feeds       tracestore.Hub
	maxBytes    int64
	allowDelete bool
	log         *zap.Logger
	now         func() time.Time
	seed        maphash.Seed
	stages      sync.Pool // of *stage
	metrics     *metrics

	// mu guards all fields below, including lists and maps of tenants, but not the content of rows
	// and origins, which never changes.
	mu             sync.RWMutex
	tenants        map[string]*tenant
	oldest, newest *trace // all traces by creation, through trace.next
	seq            uint64 // of the latest row; readers ignore rows after the seq at their start
	usage          usage
	dropper        dropper
}

// usage is the current content of the store. bytes is an estimate, see cost.go.
type usage struct {
	bytes         int64
	spans, traces int
}

var (
	_ pipeline.DurabilityReporter = (*exporter)(nil)
	_ pipeline.MemoryUser         = (*exporter)(nil)
	_ tracestore.Reader           = (*exporter)(nil)
	_ tracestore.Catalog          = (*exporter)(nil)
	_ tracestore.Edges            = (*exporter)(nil)
	_ tracestore.Follower         = (*exporter)(nil)
	_ tracestore.Metrics          = (*exporter)(nil)
	_ tracestore.Aggregator       = (*exporter)(nil)
	_ tracestore.PathProfiler     = (*exporter)(nil)
	_ tracestore.UsageReporter    = (*exporter)(nil)
	_ status.StoreReporter        = (*exporter)(nil)
)

func newExporter(set pipeline.Settings, c Config) (*exporter, error) {
	m, err := newMetrics(set.Metrics)
	if err != nil {
		return nil, err
	}
	e := &exporter{
		Memory: sampling.NewMemory(set.Env.Now), maxBytes: int64(c.MaxBytes), allowDelete: c.AllowDelete, log: set.Logger, now: set.Env.Now,
		seed: maphash.MakeSeed(), metrics: m, tenants: make(map[string]*tenant),
	}
	e.WholeTraces.Of, e.dropper.terms.seed = e, e.seed
	e.stages.New = func() any { return newStage(e.seed) }
	return e, nil
}

// Durability reports that acknowledged spans are lost when the process ends.
func (e *exporter) Durability() pipeline.Durability { return pipeline.DurabilityMemory }

// MaxMemory returns max_bytes plus a quarter, because memory use is estimated and a request may
// briefly exceed the limit.
func (e *exporter) MaxMemory() int64 { return e.maxBytes / 4 * 5 }

// Consume stores all spans of b or none. It then drops the oldest traces until the store is within
// its limit, including spans of b that belong to these traces. A request that exceeds the limit by
// itself is a permanent error.
func (e *exporter) Consume(ctx context.Context, b *otlpdata.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	st := e.stages.Get().(*stage)
	defer func() {
		if st.reset() {
			e.stages.Put(st)
		}
	}()
	if err := b.Walk(st); err != nil {
		return pipeline.Permanent(fmt.Errorf("parsing spans: %w", err))
	}
	if need := st.cost(); need > e.maxBytes {
		return pipeline.Permanent(fmt.Errorf("%w: %d bytes exceed max_bytes, which is %d", errTooLarge, need, e.maxBytes))
	}
	e.store(b.Meta().Tenant, st)
	e.feeds.Publish(b)
	return nil
}

// Follow implements tracestore.Follower.
func (e *exporter) Follow(ctx context.Context, tenant string, capacity int) (*tracestore.Feed, error) {
	return e.feeds.Follow(ctx, tenant, capacity)
}

// store inserts the spans of a request, which makes them visible to readers, and evicts old traces.
func (e *exporter) store(tenant string, st *stage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.insert(tenant, st)
	e.evict()
	e.metrics.set(e.usage)
}

var errTooLarge = errors.New("request too large for the memory store")

// metrics are the metrics of the store.
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
		evictedSpans:  counter("evicted_spans_total", "Spans dropped from the memory store because it was full."),
		evictedTraces: counter("evicted_traces_total", "Traces dropped from the memory store because it was full."),
		spans:         gauge("spans", "Spans in the memory store."),
		traces:        gauge("traces", "Traces in the memory store."),
		bytes:         gauge("bytes", "Estimated memory of the memory store for spans and indexes."),
	}
	for _, c := range []prometheus.Collector{m.evictedSpans, m.evictedTraces, m.spans, m.traces, m.bytes} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) set(u usage) {
	m.spans.Set(float64(u.spans))
	m.traces.Set(float64(u.traces))
	m.bytes.Set(float64(u.bytes))
}
