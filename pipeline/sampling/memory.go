package sampling

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// Memory is a [Store] in memory, for stores to embed or to build upon. Make it with [NewMemory].
type Memory struct {
	now func() time.Time

	mu     sync.Mutex
	state  State
	leases map[string]Lease
}

// State is what a [Memory] holds beside leases, which end with the process. A State that was handed out is not changed.
type State struct {
	Throughputs []Throughput `json:"throughputs,omitempty"` // in the order in which they came
	Latest      *Calculation `json:"latest,omitempty"`
}

// maxLeases bounds the resources: it takes few.
const maxLeases = 64

var errTooManyLeases = errors.New("too many leases")

// NewMemory returns an empty store with the clock now.
func NewMemory(now func() time.Time) *Memory {
	return &Memory{now: now, leases: map[string]Lease{}}
}

// AddThroughput implements [Throughputs].
func (m *Memory) AddThroughput(_ context.Context, t Throughput, since time.Time) error {
	if err := t.check(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := make([]Throughput, 0, len(m.state.Throughputs)+1)
	rows := 0
	for _, o := range append(m.state.Throughputs[:len(m.state.Throughputs):len(m.state.Throughputs)], t) {
		if o.Until.After(since) {
			kept, rows = append(kept, o), rows+len(o.Rows)
		}
	}
	for len(kept) > MaxThroughputs || rows > MaxRows && len(kept) > 1 {
		rows -= len(kept[0].Rows)
		kept = kept[1:]
	}
	m.state.Throughputs = kept
	return nil
}

// Throughput implements [Throughputs].
func (m *Memory) Throughput(_ context.Context, after, until time.Time) ([]Throughput, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Throughput
	for _, t := range m.state.Throughputs {
		if t.Until.After(after) && !t.Until.After(until) {
			out = append(out, t)
		}
	}
	return out, nil
}

// SaveCalculation implements [Ledger].
func (m *Memory) SaveCalculation(_ context.Context, c *Calculation) error {
	if err := c.check(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.Latest = c
	return nil
}

// LatestCalculation implements [Ledger].
func (m *Memory) LatestCalculation(context.Context) (*Calculation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Latest, nil
}

// Lease implements [Leases].
func (m *Memory) Lease(_ context.Context, resource, owner string, ttl time.Duration) (Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	held, there := m.leases[resource]
	if there && held.Owner != owner && held.Until.After(now) {
		return held, nil
	}
	if !there && len(m.leases) >= maxLeases {
		return Lease{}, errTooManyLeases
	}
	l := Lease{Owner: owner, Until: now.Add(ttl)}
	m.leases[resource] = l
	return l, nil
}

// EndLease implements [Leases].
func (m *Memory) EndLease(_ context.Context, resource, owner string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leases[resource].Owner == owner {
		delete(m.leases, resource)
	}
	return nil
}

// State returns what the store holds.
func (m *Memory) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// Restore replaces what the store holds. It fails, and changes nothing, where that breaks the bounds.
func (m *Memory) Restore(s State) error {
	rows := 0
	for i := range s.Throughputs {
		if err := s.Throughputs[i].check(); err != nil {
			return err
		}
		rows += len(s.Throughputs[i].Rows)
	}
	if s.Latest != nil {
		if err := s.Latest.check(); err != nil {
			return err
		}
	}
	if len(s.Throughputs) > MaxThroughputs || rows > MaxRows {
		return fmt.Errorf("there are %d throughputs with %d rows", len(s.Throughputs), rows)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state = s
	return nil
}

// check reports what a store must not keep: it would be told to clients, or break bounds.
func (t *Throughput) check() error {
	if t.Length <= 0 || len(t.Rows) > MaxRows || len(t.By) > MaxName {
		return fmt.Errorf("a throughput of %s with %d rows", t.Length, len(t.Rows))
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		bad := func(s Seen) bool { return !isProbability(s.Probability) || s.Probability < LeastSeen || s.Count < 0 }
		if r.isTooLong() || len(r.Seen) > MaxSeen || r.Bounded < 0 || slices.ContainsFunc(r.Seen, bad) {
			return fmt.Errorf("row %d of a throughput is not valid", i)
		}
	}
	return nil
}

func (c *Calculation) check() error {
	if len(c.Decisions) > MaxDecisions {
		return fmt.Errorf("a calculation of %d operations", len(c.Decisions))
	}
	for i := range c.Decisions {
		d := &c.Decisions[i]
		ok := isProbability(d.Probability) && isProbability(d.Before) && isCount(d.QPS) && isCount(d.Samples) && len(d.Recent) <= MaxRecent &&
			!slices.ContainsFunc(d.Recent, func(p float64) bool { return !isProbability(p) })
		if d.isTooLong() || !ok {
			return fmt.Errorf("decision %d of a calculation is not valid", i)
		}
	}
	return nil
}

func (t *Target) isTooLong() bool {
	return len(t.Tenant) > MaxName || len(t.Service) > MaxName || len(t.Operation) > MaxName
}

func isProbability(p float64) bool { return p >= 0 && p <= 1 }
func isCount(n float64) bool       { return n >= 0 && n <= math.MaxFloat64 }
