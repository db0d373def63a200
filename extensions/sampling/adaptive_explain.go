package sampling

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/extensions/sampling/internal/adaptive"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// explain returns the latest calculation for a service. With an operation, it contains only that
// operation and the intervals behind its probability.
func (s *adaptiveSource) explain(ctx context.Context, tenant, service, operation string) (*sampling.Adaptive, error) {
	out := &sampling.Adaptive{Target: s.cfg.Target, Tolerance: s.cfg.Tolerance, Operations: []sampling.AdaptiveOperation{}}
	if lease := s.lease.Load(); lease != nil {
		out.Leader, out.Until = lease.Owner, lease.Until
	}
	latest := s.state.Load().latest
	if latest == nil {
		return out, nil
	}
	out.Calculated, out.By = latest.At, latest.By
	for _, d := range ofService(latest.Decisions, tenant, service) {
		if operation == "" || operation == d.Operation {
			out.Operations = append(out.Operations, sampling.AdaptiveOperation{Decision: d})
		}
	}
	if operation == "" || len(out.Operations) == 0 {
		return out, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	h, err := s.history(ctx, latest.At)
	if err != nil {
		return nil, err
	}
	of := &out.Operations[0]
	of.Intervals = adaptive.Explain(s.cfg.options(), h, &of.Decision)
	return out, nil
}

// ofService returns the decisions for a service. all is sorted.
func ofService(all []sampling.Decision, tenant, service string) []sampling.Decision {
	order := func(d sampling.Decision, after bool) int {
		c := cmp.Or(cmp.Compare(d.Tenant, tenant), cmp.Compare(d.Service, service))
		if c == 0 && after {
			return -1
		}
		return c
	}
	from, _ := slices.BinarySearchFunc(all, false, order)
	to, _ := slices.BinarySearchFunc(all, true, order)
	return all[from:to]
}

// adaptiveLines formats a calculation as text.
func adaptiveLines(a *sampling.Adaptive, now time.Time) []string {
	lines := []string{fmt.Sprintf("target %.4g traces per second for each operation, tolerance %.3g %%",
		a.Target, 100*a.Tolerance)}
	ago := func(t time.Time) string { return now.Sub(t).Round(time.Second).String() + " ago" }
	switch {
	case a.Calculated.IsZero():
		lines = append(lines, "no calculation yet")
	default:
		lines = append(lines, fmt.Sprintf("calculated %s by %s", ago(a.Calculated), a.By))
	}
	if a.Leader != "" {
		lines = append(lines, "current leader: "+a.Leader)
	}
	for i := range a.Operations {
		o := &a.Operations[i]
		lines = append(lines, fmt.Sprintf("%s: probability %.4g, previously %.4g (%.3g traces per second); %s",
			o.Operation, o.Probability, o.Before, o.QPS, o.Reason))
		for _, x := range o.Intervals {
			if len(x.Counts) == 0 && x.ByLowerBound == 0 {
				continue
			}
			lines = append(lines, fmt.Sprintf("  interval ended %s: sampled %.3g of %.4g traces per second, weight %.2f",
				ago(x.Until), x.Sampled, x.Begun, x.Weight))
		}
	}
	return lines
}
