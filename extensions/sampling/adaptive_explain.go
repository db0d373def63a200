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

// explain returns what the latest calculation says of a service or, unless it is "", of one of its operations, and of that what it comes from.
func (s *adaptiveSource) explain(ctx context.Context, tenant, service, operation string) (*sampling.Adaptive, error) {
	out := &sampling.Adaptive{Target: s.cfg.Target, Tolerance: s.cfg.Tolerance, Operations: []sampling.AdaptiveOperation{}}
	if lease := s.leads.Load(); lease != nil {
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

// ofService returns the decisions about a service; they are sorted.
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

// adaptiveLines are what a person is told of a calculation.
func adaptiveLines(a *sampling.Adaptive, now time.Time) []string {
	lines := []string{fmt.Sprintf("%.4g traces per second are wanted of each operation; up to %.3g %% off is left alone",
		a.Target, 100*a.Tolerance)}
	ago := func(t time.Time) string { return now.Sub(t).Round(time.Second).String() + " ago" }
	switch {
	case a.Calculated.IsZero():
		lines = append(lines, "nothing was calculated yet")
	default:
		lines = append(lines, fmt.Sprintf("calculated %s by %s", ago(a.Calculated), a.By))
	}
	if a.Leader != "" {
		lines = append(lines, "the next calculation is up to "+a.Leader)
	}
	for i := range a.Operations {
		o := &a.Operations[i]
		lines = append(lines, fmt.Sprintf("%s: %.4g, before %.4g, which would sample %.3g per second; %s",
			o.Operation, o.Probability, o.Before, o.QPS, o.Reason))
		for _, x := range o.Intervals {
			if len(x.Seen) == 0 && x.Bounded == 0 {
				continue
			}
			lines = append(lines, fmt.Sprintf("  interval ended %s: %.3g per second sampled of %.4g, weight %.2f",
				ago(x.Until), x.Sampled, x.Begun, x.Weight))
		}
	}
	return lines
}
