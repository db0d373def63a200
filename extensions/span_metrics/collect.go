package spanmetrics

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	// queryMemory is the memory in bytes that asking the store reserves at once, besides what the
	// store reserves.
	queryMemory = 1 << 20
	// edgeIntervals is the number of intervals after which calls between services are counted,
	// because stores often must read spans to do so.
	edgeIntervals = 4
)

// collect asks the store and updates the series.
//
// The store is asked for the spans of whole periods of max_span_delay: the current one, the one
// before it, and those since the last success. So each span that is stored at most max_span_delay
// after its start is counted, and none twice.
func (e *extension) collect(ctx context.Context) error {
	memory, err := e.set.QueryMemory.Reserve(queryMemory)
	if err != nil {
		return err
	}
	defer memory.Release()
	ctx = tracestore.WithAccount(ctx, memory)
	now := e.set.Env.Now()
	w := window{from: e.periodOf(now), to: now, period: e.cfg.MaxDelay.Std()}
	if since := e.periodOf(e.since); !e.since.IsZero() && since.Before(w.from) {
		w.from = since
	}
	w.from = w.from.Add(-w.period)
	spans, complete, err := e.readSpans(ctx, w)
	if err != nil {
		return err
	}
	calls := window{from: e.called, to: now.Add(-e.cfg.GraphDelay.Std()).Truncate(edgeIntervals * e.cfg.Interval.Std())}
	edges, allEdges, edgesErr := e.readEdges(ctx, calls)
	if edgesErr != nil {
		edges, calls.to = e.edges.newNumbers(), calls.from
	}
	first, before := e.since.IsZero(), uint64(w.from.UnixNano())
	e.mu.Lock()
	kinds := map[string]bool{}
	for _, k := range e.spans.update(spans, first, before, now) {
		kinds[k.kind] = true
	}
	e.edges.update(edges, false, uint64(calls.from.UnixNano()), now)
	if idle := e.cfg.MaxIdle.Std(); idle > 0 {
		e.spans.expire(now.Add(-idle))
		e.edges.expire(now.Add(-idle))
	}
	e.mu.Unlock()
	since := e.since
	e.since, e.called = now, calls.to
	if edgesErr != nil {
		return edgesErr
	}
	result := "complete"
	if !complete || !allEdges {
		result = "incomplete"
	}
	e.runs.WithLabelValues(result).Inc()
	return e.readExemplars(ctx, kinds, since, now)
}

// window is the time to read: from from on, until to.
type window struct {
	from, to time.Time
	period   time.Duration // of the points to read
}

// periodOf returns the start of the period of a time. Periods begin at multiples of their length
// since the Unix epoch.
func (e *extension) periodOf(t time.Time) time.Time {
	period := e.cfg.MaxDelay.Std().Nanoseconds()
	return time.Unix(0, t.UnixNano()/period*period)
}

// readSpans returns the numbers of spans, and whether they are complete.
func (e *extension) readSpans(ctx context.Context, w window) (*numbers[spanKey], bool, error) {
	store, ok := tracestore.As[tracestore.Metrics](ctx, e.cfg.Tenant, e.cfg.Storage.Get())
	if !ok {
		return nil, false, errors.New("store does not count the calls of services")
	}
	n, complete := e.spans.newNumbers(), true
	for kind := otlpdata.KindUnspecified; kind <= otlpdata.KindConsumer; kind++ {
		name := (&otlpdata.Span{Kind: kind}).KindName()
		answer, err := store.Metrics(ctx, e.cfg.Tenant, tracestore.MetricsQuery{Kinds: []string{name}, ByOperation: true,
			From: w.from, To: w.to, Step: w.period})
		if err != nil {
			return nil, false, fmt.Errorf("counting spans: %w", err)
		}
		complete = complete && answer.Complete()
		for i := range answer.Series {
			s := &answer.Series[i]
			k := spanKey{label(s.Service), label(s.Operation), kindLabel(name)}
			for j := range s.Points {
				p := &s.Points[j]
				n.at(k, p.Start).add(p.Calls, p.Errors, &p.Durations, e.bounds)
			}
		}
	}
	return n, complete, nil
}

// readEdges returns the numbers of calls between services, and whether they are complete. Each call
// is counted once, because counting it may be expensive, and late, because a call to a service that
// sends no spans looks the same as one whose other side has not arrived yet. It returns none if
// they are not wanted, or the store does not measure them, or the window has no beginning.
func (e *extension) readEdges(ctx context.Context, w window) (*numbers[edgeKey], bool, error) {
	n := e.edges.newNumbers()
	if !e.cfg.ServiceGraph || w.from.IsZero() || !w.from.Before(w.to) {
		return n, true, nil
	}
	var graph tracestore.EdgeGraph
	err := tracestore.ErrUnsupported
	if store, ok := tracestore.As[tracestore.Edges](ctx, e.cfg.Tenant, e.cfg.Storage.Get()); ok {
		graph, err = store.Edges(ctx, e.cfg.Tenant, tracestore.EdgeQuery{From: w.from, To: w.to.Add(-1)})
	}
	switch {
	case errors.Is(err, tracestore.ErrUnsupported):
		e.log.Warn("store does not measure calls between services; they are not counted")
		return n, true, nil
	case err != nil:
		return nil, false, fmt.Errorf("counting calls between services: %w", err)
	}
	for i := range graph.Edges {
		c := &graph.Edges[i]
		k := edgeKey{label(c.Parent), label(c.Child), connectionLabel(c)}
		n.at(k, uint64(w.from.UnixNano())).add(c.Calls, c.Errors, &c.Durations, e.bounds)
	}
	return n, graph.Complete(), nil
}

// readExemplars looks up some of the spans of the given kinds that started since the last update.
func (e *extension) readExemplars(ctx context.Context, kinds map[string]bool, from, to time.Time) error {
	store, ok := tracestore.As[tracestore.Aggregator](ctx, e.cfg.Tenant, e.cfg.Storage.Get())
	if !ok || e.cfg.Exemplars == 0 || from.IsZero() {
		return nil
	}
	for kind := otlpdata.KindUnspecified; kind <= otlpdata.KindConsumer; kind++ {
		name := (&otlpdata.Span{Kind: kind}).KindName()
		if !kinds[kindLabel(name)] {
			continue
		}
		q := tracestore.Query{Tenant: e.cfg.Tenant, From: from, To: to, Budget: tracestore.Budget{Spans: e.cfg.MaxScanned},
			Where: tracestore.Cond{Field: tracestore.Field{Place: tracestore.Kind}, Op: tracestore.Eq, Value: tracestore.Text(name)}}
		answer, err := store.Aggregate(ctx, q, tracestore.Aggregation{Exemplars: e.cfg.Exemplars})
		if err != nil {
			return fmt.Errorf("looking up exemplars: %w", err)
		}
		e.mu.Lock()
		for i := range answer.Exemplars {
			x := &answer.Exemplars[i]
			if s := e.spans.series[spanKey{label(x.Service), label(x.Name), kindLabel(name)}]; s != nil {
				s.attach(x, e.bounds)
			}
		}
		e.mu.Unlock()
	}
	return nil
}

// attach makes a span the exemplar of its bucket, if the bucket counts any.
func (s *series) attach(x *tracestore.Exemplar, bounds []time.Duration) {
	b := bucketOf(tracestore.BucketOf(x.Duration), bounds)
	if b >= len(s.total.buckets) || s.total.buckets[b] == 0 {
		return
	}
	if s.exemplars == nil {
		s.exemplars = make([]prometheus.Exemplar, len(bounds)+1)
	}
	s.exemplars[b] = prometheus.Exemplar{Value: in(x.Duration, time.Millisecond), Timestamp: time.Unix(0, int64(x.Start)),
		Labels: prometheus.Labels{"trace_id": x.TraceID.String(), "span_id": x.SpanID.String()}}
}

// label returns a text as the value of a label, which must be valid UTF-8.
func label(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// kindLabel returns the name of a span kind in the OpenTelemetry protocol.
func kindLabel(kind string) string {
	if kind == "" {
		kind = "unspecified"
	}
	return "SPAN_KIND_" + strings.ToUpper(kind)
}

// connectionLabel returns the type of a connection as the Collector's connector names it.
func connectionLabel(c *tracestore.CallEdge) string {
	switch {
	case c.Connection == tracestore.ConnectionDatabase:
		return "database"
	case c.Connection == tracestore.ConnectionMessaging:
		return "messaging_system"
	case c.Peer:
		return "virtual_node"
	}
	return ""
}
