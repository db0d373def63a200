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

// Memory is a [Store] in memory. Other stores embed or extend it. Use [NewMemory] to create it.
type Memory struct {
	now func() time.Time

	mu     sync.Mutex
	state  State
	leases map[string]Lease
}

// State is the content of a [Memory] except leases, which end with the process. A State is
// immutable.
type State struct {
	Throughputs []Throughput `json:"throughputs,omitempty"` // in the order of addition
	Latest      *Calculation `json:"latest,omitempty"`
}

// maxLeases is the maximum number of resources with a lease.
const maxLeases = 64

var errTooManyLeases = errors.New("too many leases")

// NewMemory returns an empty store that uses the clock now.
func NewMemory(now func() time.Time) *Memory {
	return &Memory{now: now, leases: map[string]Lease{}}
}

// AddThroughput implements [ThroughputStore].
func (m *Memory) AddThroughput(_ context.Context, t Throughput, since time.Time) error {
	if err := t.Check(); err != nil {
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

// Throughput implements [ThroughputStore].
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

// SaveCalculation implements [CalculationStore].
func (m *Memory) SaveCalculation(_ context.Context, c *Calculation) error {
	if err := c.Check(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.Latest = c
	return nil
}

// LatestCalculation implements [CalculationStore].
func (m *Memory) LatestCalculation(context.Context) (*Calculation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Latest, nil
}

// Lease implements [LeaseStore].
func (m *Memory) Lease(_ context.Context, resource, owner string, ttl time.Duration) (Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	held, ok := m.leases[resource]
	if ok && held.Owner != owner && held.Until.After(now) {
		return held, nil
	}
	if !ok && len(m.leases) >= maxLeases {
		return Lease{}, errTooManyLeases
	}
	l := Lease{Owner: owner, Until: now.Add(ttl)}
	m.leases[resource] = l
	return l, nil
}

// EndLease implements [LeaseStore].
func (m *Memory) EndLease(_ context.Context, resource, owner string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leases[resource].Owner == owner {
		delete(m.leases, resource)
	}
	return nil
}

// State returns the current content.
func (m *Memory) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// Restore replaces the content. If s is invalid or exceeds a limit, Restore returns an error and
// changes nothing.
func (m *Memory) Restore(s State) error {
	rows := 0
	for i := range s.Throughputs {
		if err := s.Throughputs[i].Check(); err != nil {
			return err
		}
		rows += len(s.Throughputs[i].Rows)
	}
	if s.Latest != nil {
		if err := s.Latest.Check(); err != nil {
			return err
		}
	}
	if len(s.Throughputs) > MaxThroughputs || rows > MaxRows {
		return fmt.Errorf("too much data: %d throughputs with %d rows", len(s.Throughputs), rows)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state = s
	return nil
}

// Check returns an error if the throughput is invalid or exceeds a limit.
func (t *Throughput) Check() error {
	if t.Length <= 0 || len(t.Rows) > MaxRows || len(t.By) > MaxName {
		return fmt.Errorf("invalid throughput: length %s, %d rows", t.Length, len(t.Rows))
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		bad := func(s ProbabilityCount) bool {
			return !isProbability(s.Probability) || s.Probability < MinProbability || s.Count < 0
		}
		if r.isTooLong() || len(r.Counts) > MaxProbabilities || r.ByLowerBound < 0 || slices.ContainsFunc(r.Counts, bad) {
			return fmt.Errorf("invalid throughput: row %d", i)
		}
	}
	return nil
}

// Check returns an error if the calculation is invalid or exceeds a limit.
func (c *Calculation) Check() error {
	if len(c.Decisions) > MaxDecisions {
		return fmt.Errorf("invalid calculation: %d operations", len(c.Decisions))
	}
	for i := range c.Decisions {
		d := &c.Decisions[i]
		ok := isProbability(d.Probability) && isProbability(d.Before) && isCount(d.QPS) && isCount(d.Samples) &&
			len(d.Recent) <= MaxRecent &&
			!slices.ContainsFunc(d.Recent, func(p float64) bool { return !isProbability(p) })
		if d.isTooLong() || !ok {
			return fmt.Errorf("invalid calculation: decision %d", i)
		}
	}
	return nil
}

func (t *OperationKey) isTooLong() bool {
	return len(t.Tenant) > MaxName || len(t.Service) > MaxName || len(t.Operation) > MaxName
}

func isProbability(p float64) bool { return p >= 0 && p <= 1 }
func isCount(n float64) bool       { return n >= 0 && n <= math.MaxFloat64 }
