package multistore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// canned is a store that answers what a test says.
type canned struct {
	aggregate tracestore.Aggregate
	graph     tracestore.Graph
	edges     tracestore.EdgeGraph
	metrics   tracestore.MetricsAnswer
	baselines tracestore.BaselineAnswer
	usage     tracestore.Usage
	profiles  func(traces int) tracestore.PathProfile
	asked     []int // limits of the profiles that were requested
	err       error
}

func (c *canned) Aggregate(context.Context, tracestore.Query, tracestore.Aggregation) (tracestore.Aggregate, error) {
	return c.aggregate, c.err
}

func (c *canned) Dependencies(context.Context, string, time.Time, time.Time) (tracestore.Graph, error) {
	return c.graph, c.err
}

func (c *canned) Peers(context.Context, string, time.Time, time.Time) (tracestore.Graph, error) {
	return c.graph, c.err
}

func (c *canned) Edges(context.Context, string, tracestore.EdgeQuery) (tracestore.EdgeGraph, error) {
	return c.edges, c.err
}

func (c *canned) Metrics(context.Context, string, tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
	return c.metrics, c.err
}

func (c *canned) Baselines(context.Context, string, tracestore.BaselineQuery) (tracestore.BaselineAnswer, error) {
	return c.baselines, c.err
}

func (c *canned) Usage(context.Context, string) (tracestore.Usage, error) { return c.usage, c.err }

func (c *canned) ProfilePaths(
	_ context.Context, _ tracestore.Query, _ tracestore.Selection, o tracestore.PathOptions,
) (tracestore.PathProfile, error) {
	c.asked = append(c.asked, o.Traces)
	if c.err != nil {
		return tracestore.PathProfile{}, c.err
	}
	return c.profiles(o.Traces), nil
}

// over returns a store over stores named a, b, c and so on.
func over(stores ...*canned) *Store {
	var named []Named
	for i, c := range stores {
		named = append(named, Named{string(rune('a' + i)), c})
	}
	return New(named...)
}

// histogram returns a histogram of durations.
func histogram(durations ...uint64) (h tracestore.Histogram) {
	for _, d := range durations {
		h.Observe(d)
	}
	return h
}

// TestDownStores checks that each kind of answer covers the stores that answer, and names the
// others; that there is none if no store answers; and that errors of the caller are returned.
func TestDownStores(t *testing.T) {
	q := tracestore.Query{From: time.Unix(0, 0), To: time.Unix(60, 0)}
	one := tracestore.PathProfile{Rest: tracestore.PathSet{Traces: 1, Share: 1}, Selected: tracestore.PathSet{Share: 1}}
	series := []tracestore.MetricSeries{{Points: make([]tracestore.MetricPoint, 1)}}
	works := &canned{aggregate: tracestore.Aggregate{Spans: 1, Share: 1},
		graph:     tracestore.Graph{Edges: []tracestore.Edge{{Parent: "p", Child: "c", Calls: 1}}},
		edges:     tracestore.EdgeGraph{Edges: []tracestore.CallEdge{{Parent: "p", Child: "c", Calls: 1}}},
		metrics:   tracestore.MetricsAnswer{Step: uint64(time.Minute), Series: series},
		baselines: tracestore.BaselineAnswer{Durations: []tracestore.Histogram{histogram(1)}},
		usage:     tracestore.Usage{Bytes: 1}, profiles: func(int) tracestore.PathProfile { return one }}
	for name, call := range map[string]func(context.Context, *Store) (n int, complete bool, reason string, err error){
		"Aggregate": func(ctx context.Context, s *Store) (int, bool, string, error) {
			a, err := s.Aggregate(ctx, q, tracestore.Aggregation{})
			return int(a.Spans), a.Complete(), a.Text(), err
		},
		"Dependencies": func(ctx context.Context, s *Store) (int, bool, string, error) {
			g, err := s.Dependencies(ctx, "", q.From, q.To)
			return len(g.Edges), g.Complete(), g.Text(), err
		},
		"Peers": func(ctx context.Context, s *Store) (int, bool, string, error) {
			g, err := s.Peers(ctx, "", q.From, q.To)
			return len(g.Edges), g.Complete(), g.Text(), err
		},
		"Edges": func(ctx context.Context, s *Store) (int, bool, string, error) {
			g, err := s.Edges(ctx, "", tracestore.EdgeQuery{})
			return len(g.Edges), g.Complete(), g.Text(), err
		},
		"Metrics": func(ctx context.Context, s *Store) (int, bool, string, error) {
			m, err := s.Metrics(ctx, "", tracestore.MetricsQuery{})
			return len(m.Series), m.Complete(), m.Text(), err
		},
		"Baselines": func(ctx context.Context, s *Store) (int, bool, string, error) {
			b, err := s.Baselines(ctx, "", tracestore.BaselineQuery{Operations: make([]tracestore.OperationKey, 1)})
			if len(b.Durations) == 0 {
				return 0, b.Complete(), b.Text(), err
			}
			return int(b.Durations[0].Count()), b.Complete(), b.Text(), err
		},
		"ProfilePaths": func(ctx context.Context, s *Store) (int, bool, string, error) {
			p, err := s.ProfilePaths(ctx, q, tracestore.Selection{}, tracestore.PathOptions{})
			return int(p.Rest.Traces), p.Complete(), p.Text(), err
		},
		"Usage": func(ctx context.Context, s *Store) (int, bool, string, error) {
			u, err := s.Usage(ctx, "")
			return int(u.Bytes), u.Complete(), u.Text(), err
		},
	} {
		down := &canned{err: errors.New("connection refused")}
		other := &canned{err: down.err}
		n, complete, reason, err := call(t.Context(), over(works, down))
		if n != 1 || complete || reason != "store b: connection refused" || err != nil {
			t.Errorf("%s with one store down: count %d, complete %t, reason %q, error %v", name, n, complete, reason, err)
		}
		n, complete, reason, err = call(t.Context(), over(works))
		if n != 1 || !complete || reason != "" || err != nil {
			t.Errorf("%s: count %d, complete %t, reason %q, error %v", name, n, complete, reason, err)
		}
		_, _, _, err = call(t.Context(), over(down, other))
		if err == nil || !strings.Contains(err.Error(), "store a: connection refused; store b: connection refused") || !errors.Is(err, down.err) {
			t.Errorf("%s with all stores down: error %v", name, err)
		}
		wrong := &canned{err: pipeline.Permanent(errors.New("wrong request"))}
		if _, _, _, err = call(t.Context(), over(works, wrong)); !errors.Is(err, wrong.err) {
			t.Errorf("%s with an error of the caller: %v", name, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, _, err = call(ctx, over(down, other)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a canceled context: error %v", name, err)
		}
	}
}
