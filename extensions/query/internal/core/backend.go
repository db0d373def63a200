package core

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/extensions/query/internal/semconv"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/selftrace"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Store is a span store that can be queried: it reads traces and lists services and operations. For
// other capabilities (tracestore.Edges, Metrics, Aggregator and others), each request calls
// StoreAs.
type Store interface {
	tracestore.Reader
	tracestore.Catalog
}

// Archive is a store to which users copy traces that they want to keep longer.
type Archive interface {
	tracestore.Reader
	pipeline.Consumer
}

// Limits bound the cost of requests. All except ClockSkew must be positive.
type Limits struct {
	Timeout     time.Duration // of one query
	PatternTime time.Duration // CPU time of the regular expressions of one query
	Traces      int           // traces per response
	TraceSize   int           // spans shown of one trace
	Scanned     int           // spans examined per search
	Aggregated  int           // spans examined one by one to count spans by value
	Errors      int           // spans with errors that are read for examples
	ErrorScan   int           // spans examined to count errors
	Queries     int           // concurrent queries
	Names       int           // services, or operations of a service, per response
	Baseline    time.Duration // period before a trace in which usual durations are counted
	// Limits of metrics queries: the time range, samples of a series, and series.
	MetricsRange  time.Duration
	MetricsPoints int
	MetricsSeries int
	ClockSkew     time.Duration // maximum clock-skew adjustment; 0 disables it
}

// Options configure a Backend. All fields except the archive's must be set.
type Options struct {
	Store   Store
	Archive Archive // nil if there is no archive
	// ArchiveWriter passes spans to the archive and counts them. nil uses Archive itself.
	ArchiveWriter pipeline.Consumer
	Limits        Limits
	Memory        *pipeline.Budget // shared by all responses
	Logger        *zap.Logger
	Metrics       prometheus.Registerer
	Tracer        *selftrace.Tracer // nil makes no spans
	Now           func() time.Time
	Names         *semconv.Names // of attributes; nil: as they are written
}

// Backend gives the APIs access to the stores. It is safe for concurrent use.
type Backend struct {
	opts      Options
	metrics   *metrics
	admission *Admission
	// Time of the last warning about a list with too many names, in nanoseconds since the Unix
	// epoch; 0: never.
	cutWarned atomic.Int64

	runningMu sync.Mutex
	running   map[*Slot]struct{}
}

// New returns a Backend and registers its metrics.
func New(o Options) (*Backend, error) {
	if o.ArchiveWriter == nil {
		o.ArchiveWriter = o.Archive
	}
	m, err := newMetrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	return &Backend{opts: o, metrics: m, admission: NewAdmission("max_concurrent_queries", o.Limits.Queries),
		running: map[*Slot]struct{}{}}, nil
}

// Store returns the store that is queried.
func (b *Backend) Store() Store { return b.opts.Store }

// StoreAs returns the store as an optional interface T of package tracestore, and reports whether
// the store supports it for the tenant of ctx.
func StoreAs[T any](ctx context.Context, b *Backend) (T, bool) {
	return tracestore.As[T](ctx, server.Tenant(ctx), b.opts.Store)
}

// SlotAs is like StoreAs, for a query.
func SlotAs[T any](s *Slot) (T, bool) { return StoreAs[T](s.ctx, s.backend) }

// Language returns the search language for a request. A store that cannot aggregate is one of
// another program, which finds attributes only by exact name.
func (b *Backend) Language(ctx context.Context) traceql.Language {
	if _, ok := StoreAs[tracestore.Aggregator](ctx, b); !ok || b.opts.Names == nil {
		return traceql.Language{}
	}
	return traceql.Language{Names: b.opts.Names.Of}
}

// HasArchive reports whether traces can be archived.
func (b *Backend) HasArchive() bool { return b.opts.Archive != nil }

// Limits returns the configured limits.
func (b *Backend) Limits() Limits { return b.opts.Limits }

// Logger returns the logger of the extension.
func (b *Backend) Logger() *zap.Logger { return b.opts.Logger }

// Now returns the current time.
func (b *Backend) Now() time.Time { return b.opts.Now() }

// Adjustment returns how traces are adjusted before they are shown; raw disables all adjustments
// except the limit on spans.
func (b *Backend) Adjustment(raw bool) adjust.Options {
	return adjust.Options{Raw: raw, MaxSpans: b.opts.Limits.TraceSize, MaxClockSkew: b.opts.Limits.ClockSkew}
}
