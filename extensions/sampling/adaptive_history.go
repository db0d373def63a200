package sampling

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// probabilityHistory keeps the results of the latest calculations for each operation. It is safe
// for concurrent use.
type probabilityHistory struct {
	size int // calculations

	mu    sync.Mutex
	times []time.Time                         // of the calculations, the oldest first
	all   map[sampling.OperationKey][]measure // as long as times, or shorter: the newest are at the end
}

// measure is the result of a calculation for an operation. Four bytes are precise enough for a
// chart. The probability is 0 in calculations without the operation.
type measure struct{ probability, rate float32 }

func newProbabilityHistory(size int) *probabilityHistory {
	return &probabilityHistory{size: size, all: map[sampling.OperationKey][]measure{}}
}

// rateOf returns the estimated number of new traces per second.
func rateOf(d *sampling.Decision) float64 {
	if d.Before <= 0 {
		return 0
	}
	return d.QPS / d.Before
}

// addCalculation adds a calculation, unless it is not newer than the latest one.
func (h *probabilityHistory) addCalculation(c *sampling.Calculation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.times); h.size == 0 || n > 0 && !c.At.After(h.times[n-1]) {
		return
	}
	h.times = append(h.times, c.At)
	now := make(map[sampling.OperationKey]measure, len(c.Decisions))
	for i := range c.Decisions {
		d := &c.Decisions[i]
		now[d.OperationKey] = measure{float32(d.Probability), float32(rateOf(d))}
	}
	if len(h.times) > h.size {
		h.times = slices.Clone(h.times[len(h.times)-h.size:])
	}
	for key, list := range h.all {
		list = append(list, now[key])
		delete(now, key)
		if len(list) > h.size {
			list = slices.Clone(list[len(list)-h.size:])
		}
		h.all[key] = list
	}
	maps.DeleteFunc(h.all, func(_ sampling.OperationKey, list []measure) bool {
		return !slices.ContainsFunc(list, func(m measure) bool { return m.probability > 0 })
	})
	for key, m := range now {
		h.all[key] = []measure{m}
	}
}

// points returns the history of an operation, the oldest first.
func (h *probabilityHistory) points(key sampling.OperationKey) []sampling.ProbabilityPoint {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := []sampling.ProbabilityPoint{}
	list := h.all[key]
	for i, m := range list {
		if m.probability > 0 {
			at := h.times[len(h.times)-len(list)+i]
			out = append(out, sampling.ProbabilityPoint{At: at, Probability: float64(m.probability), Rate: float64(m.rate)})
		}
	}
	return out
}

// overview returns the latest calculation for a tenant, the busiest operations first.
func (s *adaptiveSource) overview(tenant string, limit int) *sampling.AdaptiveOverview {
	out := &sampling.AdaptiveOverview{Target: s.cfg.Target, Interval: s.cfg.Interval.Std(), Operations: []sampling.OperationHistory{}}
	if lease := s.lease.Load(); lease != nil {
		out.Leader = lease.Owner
	}
	latest := s.state.Load().latest
	if latest == nil {
		return out
	}
	out.Calculated, out.By = latest.At, latest.By
	for i := range latest.Decisions {
		d := &latest.Decisions[i]
		if d.Tenant == tenant {
			out.Operations = append(out.Operations, sampling.OperationHistory{Service: d.Service, Operation: d.Operation,
				Probability: d.Probability, Rate: rateOf(d), Reason: d.Reason, Changed: d.Changed})
		}
	}
	slices.SortStableFunc(out.Operations, func(a, b sampling.OperationHistory) int { return -cmp.Compare(a.Rate, b.Rate) })
	out.Omitted = max(len(out.Operations)-limit, 0)
	out.Operations = out.Operations[:len(out.Operations)-out.Omitted]
	s.addPoints(tenant, out.Operations)
	return out
}

// Limits of the points in an overview. A point takes about 100 bytes in JSON.
const (
	maxPoints       = 20_000 // of all operations; further operations have none
	minPointsOfEach = 60     // of an operation that are listed, if it has them
)

// addPoints sets the history of operations, the newest points of each.
func (s *adaptiveSource) addPoints(tenant string, operations []sampling.OperationHistory) {
	left, most := maxPoints, max(maxPoints/max(len(operations), 1), minPointsOfEach)
	for i := range operations {
		o := &operations[i]
		points := s.past.points(sampling.OperationKey{Tenant: tenant, Service: o.Service, Operation: o.Operation})
		o.Points = points[max(len(points)-min(most, left), 0):]
		left -= len(o.Points)
	}
}
