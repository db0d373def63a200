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
	// queryMemory is the memory in bytes that is reserved before the store is asked. The store
	// reserves more for each question.
	queryMemory = 1 << 20
	// callIntervals is the number of intervals after which calls between services are counted,
	// because stores often must read spans to do so.
	callIntervals = 4
	// exemplarIntervals is the number of intervals whose spans are looked up as exemplars: longer
	// ones are stored later.
	exemplarIntervals = 4
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
	kinds, missing, err := e.countSpans(ctx, now)
	if err != nil {
		return err
	}
	allCalls, err := e.countCalls(ctx, now)
	if err == nil {
		err = e.readExemplars(ctx, kinds, now)
	}
	if err != nil {
		return err
	}
	result := "complete"
	if !missing.Complete() || !allCalls {
		result = "incomplete"
	}
	e.runs.WithLabelValues(result).Inc()
	return nil
}

// countSpans updates the series of spans. It returns the kinds of spans that there are more of.
// Until all stores have answered once, spans are only noted: what a store has from before the start
// must not look like growth.
func (e *extension) countSpans(ctx context.Context, now time.Time) (kinds map[string]bool, missing tracestore.Reasons, err error) {
	w := window{from: e.periodOf(now), to: now, period: e.cfg.MaxDelay.Std()}
	first := e.since.IsZero()
	if since := e.periodOf(e.since); !first && since.Before(w.from) && now.Sub(since) < maxDelay {
		w.from = since
	}
	w.from = w.from.Add(-w.period)
	if w.from.Before(e.from) { // the clock was set back
		w.from = e.from
	}
	spans, missing, err := e.readSpans(ctx, w)
	if err != nil {
		return nil, nil, err
	}
	e.from = w.from
	if !first || !missing.Has(tracestore.ReasonUnavailable) {
		e.since = now
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	kinds = map[string]bool{}
	for _, k := range e.spans.update(spans, first, uint64(w.from.UnixNano()), now) {
		kinds[k.kind] = true
	}
	if idle := e.cfg.MaxIdle.Std(); idle > 0 {
		e.spans.expire(now.Add(-idle))
		e.calls.expire(now.Add(-idle))
	}
	return kinds, missing, nil
}

// countCalls updates the series of calls between services. After a failure, the store has until the
// next time to recover.
func (e *extension) countCalls(ctx context.Context, now time.Time) (complete bool, err error) {
	if !e.cfg.ServiceGraph {
		return true, nil
	}
	w := window{from: e.called, to: now.Add(-e.cfg.GraphDelay.Std()).Truncate(callIntervals * e.cfg.Interval.Std())}
	calls, complete := e.calls.newNumbers(), true
	if w.to.After(e.asked) {
		e.asked = w.to
		if oldest := w.to.Add(-e.cfg.MaxDelay.Std()); !w.from.IsZero() && w.from.Before(oldest) {
			w.from = oldest
			e.log.Warn("some calls between services are not counted, because the store did not respond in time")
		}
		if !w.from.IsZero() {
			if complete, err = e.readCalls(ctx, w, calls); err != nil {
				return false, err
			}
			complete = complete && w.from.Equal(e.called)
		}
		e.called = w.to
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls.update(calls, false, uint64(w.from.UnixNano()), now)
	return complete, nil
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

// readSpans returns the numbers of spans, and why some are missing.
func (e *extension) readSpans(ctx context.Context, w window) (*numbers[spanKey], tracestore.Reasons, error) {
	store, ok := tracestore.As[tracestore.Metrics](ctx, e.cfg.Tenant, e.cfg.Storage.Get())
	if !ok {
		return nil, nil, errors.New("store does not count the calls of services")
	}
	n, missing := e.spans.newNumbers(), tracestore.Reasons(nil)
	for kind := otlpdata.KindUnspecified; kind <= otlpdata.KindConsumer; kind++ {
		name := (&otlpdata.Span{Kind: kind}).KindName()
		answer, err := store.Metrics(ctx, e.cfg.Tenant, tracestore.MetricsQuery{Kinds: []string{name}, ByOperation: true,
			From: w.from, To: w.to, Step: w.period})
		if err != nil {
			return nil, nil, fmt.Errorf("counting spans: %w", err)
		}
		missing.Add(answer.Reasons...)
		e.noteCrowded(answer.Series, kindLabel(name), n)
		for i := range answer.Series {
			s := &answer.Series[i]
			k := spanKey{label(s.Service), label(s.Operation), kindLabel(name)}
			if all := (spanKey{k.service, other, k.kind}); e.crowded[all] {
				k = all
			}
			for j := range s.Points {
				p := &s.Points[j]
				n.at(k, p.Start).add(p.Calls, p.Errors, &p.Durations, e.bounds)
			}
		}
	}
	return n, missing, nil
}

// noteCrowded finds the services with more operations than a store returns. Which ones it returns
// may change from one answer to the next, so all of them are counted together from now on.
func (e *extension) noteCrowded(all []tracestore.MetricSeries, kind string, n *numbers[spanKey]) {
	operations := map[string]int{}
	for i := range all {
		service := all[i].Service
		if operations[service]++; operations[service] <= tracestore.MaxOperations {
			continue
		}
		if k := (spanKey{label(service), other, kind}); !e.crowded[k] {
			e.crowded[k], n.noted[k] = true, true
		}
	}
}

// readCalls adds the numbers of calls between services in a window, and reports whether they are
// complete. Each call is counted once, because counting it may be expensive, and late, because a
// call to a service that sends no spans looks the same as one whose other side has not arrived yet.
func (e *extension) readCalls(ctx context.Context, w window, to *numbers[edgeKey]) (complete bool, err error) {
	var graph tracestore.EdgeGraph
	err = tracestore.ErrUnsupported
	if store, ok := tracestore.As[tracestore.Edges](ctx, e.cfg.Tenant, e.cfg.Storage.Get()); ok {
		graph, err = store.Edges(ctx, e.cfg.Tenant, tracestore.EdgeQuery{From: w.from, To: w.to.Add(-1)})
	}
	switch {
	case errors.Is(err, tracestore.ErrUnsupported):
		e.log.Warn("store does not measure calls between services; they are not counted")
		return true, nil
	case err != nil:
		return false, fmt.Errorf("counting calls between services: %w", err)
	}
	for i := range graph.Edges {
		c := &graph.Edges[i]
		k := edgeKey{label(c.Parent), label(c.Child), connectionLabel(c)}
		to.at(k, uint64(w.from.UnixNano())).add(c.Calls, c.Errors, &c.Durations, e.bounds)
	}
	return graph.Complete(), nil
}

// readExemplars looks up some of the latest spans of the given kinds.
func (e *extension) readExemplars(ctx context.Context, kinds map[string]bool, to time.Time) error {
	store, ok := tracestore.As[tracestore.Aggregator](ctx, e.cfg.Tenant, e.cfg.Storage.Get())
	if !ok || e.cfg.Exemplars == 0 {
		return nil
	}
	from := to.Add(-exemplarIntervals * e.cfg.Interval.Std())
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
