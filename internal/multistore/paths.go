package multistore

import (
	"context"
	"math"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/callpath"
)

var _ tracestore.PathProfiler = (*Store)(nil)

// ProfilePaths implements tracestore.PathProfiler.
//
//   - The traces that may be examined are divided evenly among the stores, at least one for each.
//     If some stores have fewer, a second request asks the others for as many more.
//   - All counts add up, which is exact if all stores examined all traces. A trace that is divided
//     among stores counts once in each of them, with the paths that the spans there have.
//   - If stores examined different shares of a set, the counts of each are weighted, so that a
//     store contributes in proportion to the estimated number of its traces. The sum of
//     PathSet.Traces remains the number of examined traces. Weighted counts are rounded, and are at
//     least 1.
//   - Each store may examine as many spans as Budget.Spans permits.
func (s *Store) ProfilePaths(
	ctx context.Context, q tracestore.Query, sel tracestore.Selection, o tracestore.PathOptions,
) (tracestore.PathProfile, error) {
	if err := o.Check(); err != nil {
		return tracestore.PathProfile{}, err
	}
	want := o.Traces
	if want == 0 {
		want = tracestore.MaxPathTraces
	}
	quota := max(want/len(s.stores), 1)
	profile := func(some []*member, quota int) ([]answer[tracestore.PathProfile], tracestore.Reasons, error) {
		return ask(ctx, &Store{some}, q.Tenant, func(ctx context.Context, p tracestore.PathProfiler) (tracestore.PathProfile, error) {
			return p.ProfilePaths(ctx, q, sel, tracestore.PathOptions{Traces: quota})
		})
	}
	answers, missing, err := profile(s.stores, quota)
	if err != nil {
		return tracestore.PathProfile{}, err
	}
	if some, more := s.withMore(answers, want, quota); len(some) > 0 {
		again, _, _ := profile(some, more) // a store that fails now has responded before
		if err := ctx.Err(); err != nil {
			return tracestore.PathProfile{}, err
		}
		for _, a := range again {
			if i := slices.IndexFunc(answers, func(b answer[tracestore.PathProfile]) bool { return a.store == b.store }); a.value.Complete() {
				answers[i] = a
			}
		}
	}
	memory, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return tracestore.PathProfile{}, err
	}
	defer memory.Release()
	return mergeProfiles(answers, missing, memory), nil
}

// withMore returns the stores that have more traces of a set than the quota, and how many they may
// examine because other stores have fewer. It returns no stores if they could examine only a few
// more.
func (s *Store) withMore(answers []answer[tracestore.PathProfile], want, quota int) (some []*member, more int) {
	left := want
	for _, a := range answers {
		full := false
		for _, set := range []*tracestore.PathSet{&a.value.Selected, &a.value.Rest} {
			full = full || a.value.Complete() && set.Share < 1 && set.Traces >= uint64(quota)
		}
		if !full {
			left -= int(min(max(a.value.Selected.Traces, a.value.Rest.Traces), uint64(want)))
			continue
		}
		i := slices.IndexFunc(s.stores, func(n *member) bool { return n.Name == a.store })
		some = append(some, s.stores[i])
	}
	if more = left / max(len(some), 1); 2*more < 3*quota {
		return nil, 0
	}
	return some, more
}

// mergeProfiles adds up profiles. It modifies them.
func mergeProfiles(answers []answer[tracestore.PathProfile], missing tracestore.Reasons, memory *tracestore.Memory) tracestore.PathProfile {
	profiles := make([]*tracestore.PathProfile, len(answers))
	for i := range answers {
		profiles[i] = &answers[i].value
	}
	selected, rest := weigh(profiles, selectedCounts), weigh(profiles, restCounts)
	var counter callpath.Counter
	counter.ChargeTo(memory)
	scanned := 0
	for i, p := range profiles {
		missing.Add(p.Of(answers[i].store)...)
		scanned += p.Scanned
		if err := counter.AddProfile(p); err != nil {
			missing.Add(wrong(answers[i].store, err.Error()))
		}
	}
	out := counter.Answer()
	out.Scanned, out.Selected.Share, out.Rest.Share = scanned, selected, rest
	missing.Add(out.Reasons...)
	out.Reasons = missing
	return out
}

// countsOf calls visit with the counts of all paths and operations of one set, and returns the set.
type countsOf func(p *tracestore.PathProfile, visit func(*tracestore.PathCounts)) *tracestore.PathSet

func selectedCounts(p *tracestore.PathProfile, visit func(*tracestore.PathCounts)) *tracestore.PathSet {
	for i := range p.Paths {
		visit(&p.Paths[i].Selected)
	}
	for i := range p.Operations {
		visit(&p.Operations[i].Selected)
	}
	return &p.Selected
}

func restCounts(p *tracestore.PathProfile, visit func(*tracestore.PathCounts)) *tracestore.PathSet {
	for i := range p.Paths {
		visit(&p.Paths[i].Rest)
	}
	for i := range p.Operations {
		visit(&p.Operations[i].Rest)
	}
	return &p.Rest
}

// weigh weights the counts of one set of profiles, so that each contributes in proportion to the
// estimated number of its traces, and returns the share of all.
func weigh(profiles []*tracestore.PathProfile, of countsOf) (share float64) {
	examined, all := 0.0, 0.0
	for _, p := range profiles {
		set := of(p, func(*tracestore.PathCounts) {})
		if !(set.Share > 0 && set.Share < 1) {
			set.Share = 1 // even if a store returns something else
		}
		examined += float64(set.Traces)
		all += float64(set.Traces) / set.Share
	}
	if examined == all {
		return 1
	}
	carry := 0.5
	for _, p := range profiles {
		weight := examined / all / of(p, func(*tracestore.PathCounts) {}).Share
		if math.Abs(weight-1) < 1e-9 {
			continue
		}
		set := of(p, func(c *tracestore.PathCounts) { weighCounts(c, weight) })
		weighSet(set, weight, &carry)
		of(p, func(c *tracestore.PathCounts) { c.Traces = min(c.Traces, set.Traces) })
	}
	return examined / all
}

// weighSet weights a set. The error from rounding the number of traces is left in carry, so that
// the sum over all profiles does not change.
func weighSet(s *tracestore.PathSet, weight float64, carry *float64) {
	traces, rest := math.Modf(float64(s.Traces)*weight + *carry)
	*carry = rest
	s.Traces = uint64(traces)
	s.Failed = min(weighted(s.Failed, weight), s.Traces)
	s.Spans, s.Time = weighted(s.Spans, weight), weighted(s.Time, weight)
	s.TimeSquares *= weight
}

func weighCounts(c *tracestore.PathCounts, weight float64) {
	for _, n := range []*uint64{&c.Traces, &c.Calls, &c.Errors, &c.SelfTime} {
		*n = weighted(*n, weight)
	}
	c.SelfSquares *= weight
	c.CallSquares *= weight
}

// weighted multiplies a count by a weight. The result is at least 1 for a count above 0, and
// preserves the order of counts.
func weighted(n uint64, weight float64) uint64 {
	if n == 0 {
		return 0
	}
	return max(uint64(math.Round(float64(n)*weight)), 1)
}
