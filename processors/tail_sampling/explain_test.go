package tailsampling_test

import (
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// explained returns what the processor of a program says about a trace.
func (p *program) explained(t *testing.T, id sampling.TraceID) sampling.Stage {
	t.Helper()
	for _, c := range p.Components() {
		if e, ok := c.Component.(sampling.TraceExplainer); ok && c.Kind == pipeline.KindProcessor {
			if s, drops := e.ExplainTrace(id); drops {
				return s
			}
		}
	}
	t.Fatal("no processor explains")
	return sampling.Stage{}
}

// What an explanation says about a probabilistic policy is what the component does.
func TestExplainProbabilistic(t *testing.T) {
	p, stop := start(t, "tail_sampling", `decision_wait: 100ms, policies: [{name: some, type: probabilistic, probabilistic: {sampling_percentage: 40, hash_salt: x}}]`, "")
	const traces = 200
	for i := range traces {
		if err := p.send(t, "", i<<16, 1, false); err != nil {
			t.Fatal(err)
		}
	}
	kept := 0
	verdicts := map[int]sampling.Verdict{}
	for i := range traces {
		if verdicts[i] = p.explained(t, sampling.TraceID(idOf(i<<16))).Verdict; verdicts[i] == sampling.Keeps {
			kept++
		}
	}
	if err := stop(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	if kept == 0 || kept == traces {
		t.Fatalf("%d of %d traces are said to be kept", kept, traces)
	}
	for i, v := range verdicts {
		if stored := p.stored[traceKey{"", idOf(i << 16)}] > 0; stored != (v == sampling.Keeps) {
			t.Errorf("trace %d: stored %t, but said %s", i, stored, v)
		}
	}
}

func TestExplainPolicies(t *testing.T) {
	for policies, want := range map[string]sampling.Verdict{
		`{name: all, type: always_sample}`: sampling.Keeps,
		`{name: all, type: always_sample}, {name: not, type: drop, drop: {drop_sub_policy: [{name: a, type: latency, latency: {threshold_ms: 1}}]}}`: sampling.Depends,
		`{name: none, type: probabilistic, probabilistic: {sampling_percentage: 0}}, {name: slow, type: latency, latency: {threshold_ms: 500}}`:      sampling.Depends,
		`{name: none, type: probabilistic, probabilistic: {sampling_percentage: 0}}`:                                                                 sampling.Drops,
		`{name: count, type: span_count, span_count: {min_spans: 3}}`:                                                                                sampling.Depends,
	} {
		p, stop := start(t, "tail_sampling", "decision_wait: 1s, policies: ["+policies+"]", "")
		s := p.explained(t, sampling.TraceID(idOf(7)))
		if s.Verdict != want || len(s.Rules) == 0 || s.Rules[0].Text == "" || s.Wait != time.Second.Nanoseconds() {
			t.Errorf("%s: %+v, want %s", policies, s, want)
		}
		if err := stop(10 * time.Second); err != nil {
			t.Error(err)
		}
	}
}
