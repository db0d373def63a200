package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

var _ tracestore.Edges = (*exporter)(nil)

// Dependencies implements tracestore.Edges. Duplicates from different requests count as
// often as they are stored. See callReach for calls between distant spans.
func (e *exporter) Dependencies(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	var calls storequery.CallCounter
	missing, err := e.calls(ctx, tenant, "", from, to, func(s *callSum) {
		if s.flags&callToPeer == 0 {
			edge := s.edge()
			calls.AddEdge(&edge)
		}
	})
	if err != nil {
		return tracestore.Graph{}, fmt.Errorf("counting calls: %w", err)
	}
	return tracestore.Graph{Edges: calls.Edges(), Reasons: missing.ofServices()}, nil
}

// Peers implements tracestore.Edges. It counts like Dependencies.
func (e *exporter) Peers(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	var calls storequery.PeerCounter
	missing, err := e.calls(ctx, tenant, "", from, to, func(s *callSum) {
		if s.flags&callToPeer != 0 && s.flags&callToHost == 0 {
			edge := s.edge()
			calls.AddEdge(&edge)
		}
	})
	if err != nil {
		return tracestore.Graph{}, fmt.Errorf("counting calls to peers: %w", err)
	}
	if missing.peers {
		calls.MarkIncomplete()
	}
	g := calls.Graph()
	if reasons := missing.ofServices(); !reasons.Complete() {
		g.Reasons = reasons
	}
	return g, nil
}

// Edges implements tracestore.Edges. It counts like Dependencies.
func (e *exporter) Edges(ctx context.Context, tenant string, q tracestore.EdgeQuery) (tracestore.EdgeGraph, error) {
	calls := storequery.NewEdgeCounter(&q)
	missing, err := e.calls(ctx, tenant, q.Service, q.From, q.To, func(s *callSum) {
		if s.flags&callInner == 0 {
			calls.AddEdge(&tracestore.CallEdge{Parent: s.parent, Child: s.child, Peer: s.flags&callToPeer != 0, Connection: s.connection,
				Calls: s.calls, Errors: s.errors, Durations: s.durations})
		}
	})
	if err != nil {
		return tracestore.EdgeGraph{}, fmt.Errorf("measuring calls: %w", err)
	}
	if missing.peers {
		calls.MarkIncomplete()
	}
	g := calls.Graph()
	if reasons := missing.ofServices(); !reasons.Complete() {
		g.Reasons = reasons
	}
	return g, nil
}

// edge returns the sum as an edge of a Graph.
func (s *callSum) edge() tracestore.Edge {
	return tracestore.Edge{Parent: s.parent, Child: s.child, Messaging: s.flags&callMessaging != 0, Calls: s.calls, Errors: s.errors,
		Duration: s.durations.Sum}
}

// missingCalls says which calls are not counted.
type missingCalls struct {
	peers  bool               // to some peers
	spans  bool               // of very long traces
	shards tracestore.Reasons // why some servers did not answer
}

// or adds what another part misses.
func (m *missingCalls) or(o missingCalls) {
	m.peers, m.spans = m.peers || o.peers, m.spans || o.spans
	if m.shards.Complete() {
		m.shards = o.shards
	}
}

// ofServices returns why calls between services are missing.
func (m *missingCalls) ofServices() tracestore.Reasons {
	switch {
	case !m.shards.Complete():
		return m.shards
	case m.spans:
		return tracestore.Because(tracestore.ReasonLimit,
			fmt.Sprintf("calls of traces with more than %d spans are omitted in part", maxCallSpans))
	}
	return nil
}

// The table "edges" is a cache of the calls of whole hours, one row for each. Query services add
// the counts of hours. If several services count the same hour, the latest row is used. state
// identifies the counted spans: see storedHours.

// edgeColumns returns the columns of the table "edges" after tenant. The arrays have one element
// for each sum of calls.
func edgeColumns() []string {
	return []string{"hour", "state", "omitted", "calls.parent", "calls.child", "calls.flags", "calls.connection", "calls.calls",
		"calls.errors", "calls.duration", "calls.first", "calls.counts"}
}

// cachedHour is a row of the table "edges".
type cachedHour struct {
	hour          uint32
	state         uint64
	omitted       uint8
	parents, kids []string
	flags, types  []uint8
	calls, errors []uint64
	durations     []uint64
	first         []uint16
	counts        [][]uint64
}

// cachedCalls adds the calls of windows in the cache. It returns the other windows.
func (e *exporter) cachedCalls(
	ctx context.Context, tenant string, windows []*hourWindow, add func(*callSum),
) (rest []*hourWindow, missing missingCalls, _ error) {
	byHour := make(map[uint64]*hourWindow)
	for _, w := range windows {
		if w.whole {
			byHour[w.number] = w
		}
	}
	if len(byHour) == 0 {
		return windows, missing, nil
	}
	sql := "SELECT `" + strings.Join(edgeColumns(), "`, `") + "` FROM " + e.db.Table("edges") + " WHERE " + where.Tenant(tenant) +
		" AND hour BETWEEN " + where.Uint(windows[0].number) + " AND " + where.Uint(windows[len(windows)-1].number) +
		" ORDER BY hour, counted DESC LIMIT 1 BY hour"
	err := e.each(ctx, sql, func(r row) error {
		var c cachedHour
		if err := c.scan(r); err != nil {
			return err
		}
		w := byHour[uint64(c.hour)]
		if w == nil || w.state != c.state {
			return nil
		}
		sums, err := c.sums()
		if err != nil {
			e.log.Warn("ignored cached calls", zap.String("tenant", tenant), zap.Uint32("hour", c.hour), zap.Error(err))
			return nil
		}
		for i := range sums {
			add(&sums[i])
		}
		missing.peers = missing.peers || c.omitted != 0
		delete(byHour, w.number)
		return nil
	})
	if err != nil {
		return nil, missing, fmt.Errorf("reading cached calls: %w", err)
	}
	for _, w := range windows {
		if !w.whole || byHour[w.number] != nil {
			rest = append(rest, w)
		}
	}
	return rest, missing, nil
}

func (c *cachedHour) scan(r row) error {
	return r.Scan(&c.hour, &c.state, &c.omitted, &c.parents, &c.kids, &c.flags, &c.types, &c.calls, &c.errors, &c.durations,
		&c.first, &c.counts)
}

var errCachedCalls = errors.New("invalid row")

// sums returns the calls of the row.
func (c *cachedHour) sums() ([]callSum, error) {
	n := len(c.parents)
	for _, l := range []int{len(c.kids), len(c.flags), len(c.types), len(c.calls), len(c.errors), len(c.durations), len(c.first),
		len(c.counts)} {
		if l != n {
			return nil, errCachedCalls
		}
	}
	sums := make([]callSum, n)
	for i := range sums {
		if callFlags(c.flags[i])&^allCallFlags != 0 || int(c.types[i]) >= tracestore.Connections {
			return nil, errCachedCalls
		}
		h, err := tracestore.HistogramOf(c.durations[i], int(c.first[i]), c.counts[i])
		if err != nil {
			return nil, err
		}
		if c.calls[i] == 0 || h.Count() != c.calls[i] || c.errors[i] > c.calls[i] {
			return nil, errCachedCalls
		}
		sums[i] = callSum{calls: c.calls[i], errors: c.errors[i], durations: h, callKey: callKey{parent: c.parents[i], child: c.kids[i],
			flags: callFlags(c.flags[i]), connection: tracestore.Connection(c.types[i])}}
	}
	return sums, nil
}

// cachedOf returns the row of an hour.
func cachedOf(w *hourWindow) cachedHour {
	c := cachedHour{hour: uint32(w.number), state: w.state}
	if w.table.omitted {
		c.omitted = 1
	}
	sums := w.table.sorted()
	for i := range sums {
		s := &sums[i]
		first, counts := s.durations.Counts()
		c.parents, c.kids = append(c.parents, s.parent), append(c.kids, s.child)
		c.flags, c.types = append(c.flags, uint8(s.flags)), append(c.types, uint8(s.connection))
		c.calls, c.errors = append(c.calls, s.calls), append(c.errors, s.errors)
		c.durations, c.first = append(c.durations, s.durations.Sum), append(c.first, uint16(first))
		c.counts = append(c.counts, counts)
	}
	return c
}

// cacheCalls adds the calls of hours to the cache. If it fails, they are only recounted.
func (e *exporter) cacheCalls(ctx context.Context, tenant string, hours []cachedHour) {
	err := e.db.Insert(ctx, db.Insert{
		Table: "edges", Columns: append([]string{"tenant"}, edgeColumns()...),
		Fill: func(b driver.Batch) error {
			for i := range hours {
				c := &hours[i]
				if err := b.Append(tenant, c.hour, c.state, c.omitted, c.parents, c.kids, c.flags, c.types, c.calls, c.errors, c.durations,
					c.first, c.counts); err != nil {
					return err
				}
			}
			return nil
		},
	})
	if err != nil && ctx.Err() == nil {
		e.log.Warn("cannot cache calls", zap.String("tenant", tenant), zap.Uint32("first_hour", hours[0].hour), zap.Int("hours", len(hours)),
			zap.Error(err))
	}
}
