package host

import (
	"context"
	"os"
	"runtime"
	"slices"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// Details returns the state of the process that operators see.
func (a *App) Details(ctx context.Context) status.Details {
	running, graph := a.current()
	d := status.Details{Build: a.build, Now: a.env.Now(), Since: a.began, Report: a.Status(), Intake: a.Intake(), Limits: a.limits(),
		Queues: a.queues(), Stores: []status.Store{}}
	if host, err := os.Hostname(); err == nil {
		d.Process = host
	}
	for _, n := range graph.nodes {
		if s, ok := n.component.(status.StoreReporter); ok && n.edge != nil {
			d.Stores = append(d.Stores, storeStatus(ctx, n, s))
		}
	}
	d.Configuration, _ = running.PrintRunning(a.Durability) // without it, the rest is still true
	in := a.balanceInput(d.Report.Pipelines)
	d.Accounts, d.Balances = in.Accounts, status.Balances(in)
	return d
}

// queues returns the state of all sending queues.
func (a *App) queues() []status.Queue {
	_, graph := a.current()
	return a.metrics.delivery.Queues(func(name string) pipeline.QueueConfig {
		for _, n := range graph.nodes {
			if n.edge != nil && n.deliveryName().Name() == name {
				return n.edge.QueueConfig()
			}
		}
		return pipeline.QueueConfig{}
	})
}

// balanceInput returns the input for the balance equations of the given pipelines.
func (a *App) balanceInput(pipelines []status.Pipeline) status.BalanceInput {
	_, graph := a.current()
	in := status.BalanceInput{Pipelines: pipelines, Accounts: a.metrics.delivery.Accounts(), Stores: map[string]bool{},
		Busy: a.budget.Used() > 0}
	for _, n := range graph.nodes {
		for _, to := range n.writes {
			in.Writers = append(in.Writers, status.Way{Extension: n.config.Key.ID.String(), Exporter: to})
		}
		if n.edge != nil {
			in.Stores[n.deliveryName().Name()] = !n.sends()
		}
	}
	return in
}

// sends reports whether an exporter sends spans to a next hop, with or without a queue.
func (n *node) sends() bool { return durabilityOf(n.component) == pipeline.DurabilitySent }

func storeStatus(ctx context.Context, n *node, r status.StoreReporter) status.Store {
	s, err := r.StoreStatus(ctx)
	if err != nil {
		s.Problem = err.Error()
	}
	s.Component = n.config.Key.ID.String()
	if s.Parts == nil {
		s.Parts = []status.Part{}
	}
	if s.Gaps == nil {
		s.Gaps = []status.Gap{}
	}
	if s.Expiring == nil {
		s.Expiring = []status.Expiry{}
	}
	return s
}

// limits returns the limits of the whole process.
func (a *App) limits() []status.Limit {
	out := []status.Limit{}
	add := func(key string, b *pipeline.Budget) {
		if b.Limit() > 0 {
			out = append(out, status.Limit{Key: key, Used: b.Used(), Peak: b.Peak(), Max: b.Limit()})
		}
	}
	add("service.limits.inflight", a.budget)
	if querying, _, _ := a.queriers(); querying {
		add("service.limits.query_memory", a.queries)
	}
	if a.holderMemory() > 0 {
		add("service.limits.held", a.held)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if p := a.memory.Load(); p != nil {
		out = append(out, status.Limit{Key: "soft memory limit", Used: int64(m.Sys - m.HeapReleased), Max: p.limit})
	}
	return out
}

// Components returns the running components.
func (a *App) Components() []pipeline.Running {
	a.mu.Lock()
	running, c := slices.Clone(a.started), a.config
	a.mu.Unlock()
	out := make([]pipeline.Running, 0, len(running))
	for _, n := range running {
		r := pipeline.Running{Kind: n.config.Key.Kind, ID: n.config.Key.ID, Component: n.component}
		for _, p := range c.Pipelines {
			member := slices.ContainsFunc(p.Members(), func(m *config.Component) bool { return m.Key == n.config.Key })
			if member && (n.pipeline == "" || n.pipeline == p.ID.String()) && (n.edge == nil || n.signal == signalOf(p)) {
				r.Pipelines = append(r.Pipelines, p.ID.String())
			}
		}
		out = append(out, r)
	}
	return out
}
