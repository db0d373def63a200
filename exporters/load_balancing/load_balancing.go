// Package loadbalancing implements the `load_balancing` exporter. It distributes spans to several
// backends such that all spans of a trace, of a service, or with equal attributes go to the same
// backend, where a processor sees all of them.
package loadbalancing

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/internal/otlpparts"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Factory returns the factory of exporters of type load_balancing.
func Factory() pipeline.Factory {
	return pipeline.Exporter("load_balancing", defaults, newExporter).Alias("loadbalancing").
		Doc("Sends all spans of a trace, or of a service, to the same one of several next hops, for example in front of tail_sampling.")
}

type exporter struct {
	routing  routing
	backends *backends
	resolver *resolver
	budget   *pipeline.Budget
	metrics  *metrics
}

var (
	_ pipeline.Starter            = (*exporter)(nil)
	_ pipeline.Stopper            = (*exporter)(nil)
	_ pipeline.DurabilityReporter = (*exporter)(nil)
)

func newExporter(set pipeline.Settings, c config) (*exporter, error) {
	m, err := newMetrics(set)
	if err != nil {
		return nil, err
	}
	h := &health{report: set.Report}
	b := &backends{set: set, config: c.Protocol.OTLP, metrics: m, health: h}
	return &exporter{routing: routing{c.RoutingKey, c.RoutingAttributes}, backends: b, budget: set.Budget, metrics: m,
		resolver: newResolver(set, c, b, m, h)}, nil
}

// Start resolves the backends, starts connecting to them, and re-resolves them from time to time.
func (e *exporter) Start(ctx context.Context) error { return e.resolver.start(ctx) }

// Stop closes all connections after open calls have ended.
func (e *exporter) Stop(ctx context.Context) error {
	e.resolver.stop()
	return e.backends.stop(ctx)
}

// Durability returns DurabilitySent: acknowledged spans are at a backend.
func (e *exporter) Durability() pipeline.Durability { return pipeline.DurabilitySent }

// Consume makes one attempt to send each part of b to its backend, all parts at the same time. If
// some parts fail temporarily, the next attempt sends only their spans, each to the backend that it
// belongs to by then. If there is no further attempt, the error applies to all spans: a caller that
// retries resends the accepted parts. After a queue, where no caller retries, only the spans of
// other parts count as dropped.
func (e *exporter) Consume(ctx context.Context, b *otlpdata.Batch) error {
	progress := pipeline.ProgressOf(ctx)
	left := b
	if progress.Remaining != nil {
		left = progress.Remaining
	}
	if err := e.attempt(ctx, left, progress); err != nil {
		return err
	}
	return progress.Result(b.Len())
}

var errNoBackends = errors.New("no backend is known")

// attempt sends b and records the outcome of each part. It returns the error of a part that failed
// temporarily, or nil if there is none.
func (e *exporter) attempt(ctx context.Context, b *otlpdata.Batch, progress *pipeline.Progress) error {
	table := e.backends.acquire()
	defer table.release()
	if len(table.backends) == 0 {
		return pipeline.Unavailable(errNoBackends, 0)
	}
	parts, memory, err := e.split(b, table.ring)
	if err != nil {
		return err
	}
	defer memory.Release()
	return e.record(b, parts, e.send(ctx, table, parts), progress)
}

// split divides a batch by backend. A batch for a single backend is passed on unchanged; for
// others, memory is reserved for copies of the spans.
func (e *exporter) split(b *otlpdata.Batch, ring ring) ([]part, *otlpparts.Memory, error) {
	size := int64(0)
	var parts []part
	if b.Len() > 0 {
		backend, sole, err := soleBackend(b, ring, &e.routing)
		switch {
		case err != nil:
			return nil, nil, pipeline.Permanent(err)
		case sole:
			parts = []part{{backend, b}}
		default:
			size = int64(b.Size())
		}
	}
	memory, err := otlpparts.NewMemory(e.budget, size, "bytes of resources repeated for several backends")
	if err != nil || size == 0 {
		return parts, memory, err
	}
	if parts, err = divide(b, ring, &e.routing, memory.Grow); err != nil {
		memory.Release()
		if !errors.Is(err, pipeline.ErrOverBudget) {
			err = pipeline.Permanent(err)
		}
		return nil, nil, err
	}
	return parts, memory, nil
}

// send sends all parts at the same time and returns their errors.
func (e *exporter) send(ctx context.Context, table *table, parts []part) []error {
	errs := make([]error, len(parts))
	one := func(i int) {
		target := table.backends[parts[i].backend]
		errs[i] = target.client.Send(ctx, parts[i].batch)
		target.count(parts[i].batch.Len(), errs[i])
	}
	var others sync.WaitGroup
	for i := 1; i < len(parts); i++ {
		others.Go(func() { one(i) })
	}
	if len(parts) > 0 {
		one(0)
	}
	others.Wait()
	return errs
}

// record adds the outcomes of the parts of b to progress, and returns the error of parts that
// failed temporarily: the one with the longest delay.
func (e *exporter) record(b *otlpdata.Batch, parts []part, errs []error, progress *pipeline.Progress) error {
	var failed []*otlpdata.Batch
	var worst error
	longest := time.Duration(-1)
	for i, err := range errs {
		spans := parts[i].batch.Len()
		rejected, retry := outcome(spans, err)
		if retry {
			failed = append(failed, parts[i].batch)
			if _, delay := pipeline.HTTPStatus(err); delay > longest {
				worst, longest = err, delay
			}
			continue
		}
		progress.Taken += spans - rejected
		if progress.Refusal == nil {
			progress.Refusal = err
		}
	}
	switch len(failed) {
	case 0:
		return nil
	case len(parts):
		progress.Remaining = b
		return worst
	}
	left, err := otlpdata.Concat(failed...)
	if err != nil {
		return pipeline.Permanent(err)
	}
	progress.Remaining = left
	return worst
}

// outcome returns how many of n spans a backend that returned err has rejected, and whether they
// must be resent.
func outcome(n int, err error) (rejected int, retry bool) {
	var partial *pipeline.Partial
	switch {
	case err == nil:
		return 0, false
	case errors.As(err, &partial):
		return min(max(partial.Rejected, 0), n), false
	}
	return n, !pipeline.IsPermanent(err)
}
