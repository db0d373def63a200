package sampling

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

func listed(t *testing.T, e *extension, tenant string, limit int) (*sampling.Overview, string) {
	t.Helper()
	o, err := e.List(t.Context(), tenant, limit)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range o.Services {
		line := fmt.Sprintf("%s %s %v +%d %s", s.Service, s.Sampler.Type, s.Sampler.Param, s.Operations, s.Origin.Place)
		if s.Last != nil {
			line += fmt.Sprintf(" %d: %s", s.Clients, s.Last.Answer)
		}
		out = append(out, line)
	}
	return o, strings.Join(out, "; ")
}

// Services with a strategy of their own and those that clients asked for are listed.
func TestList(t *testing.T) {
	e, _ := start(t, fileConfig("testdata/strategies.json"))
	ask := func(tenant, service string) {
		q := sampling.Request{Tenant: tenant, Service: service, Client: sampling.Client{Address: "10.0.0.1", Transport: "http"}}
		if _, err := e.Strategy(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	ask("", "limited")
	ask("", "zebra")
	ask("other", "secret")
	o, got := listed(t, e, "", 100)
	for _, want := range []string{"limited ratelimiting 7 +0 testdata/strategies.json:", " 1: 7 traces per second", "zebra probabilistic "} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing: %s", want, got)
		}
	}
	if strings.Contains(got, "secret") || o.Adaptive != nil || o.Omitted != 0 || o.Default.Origin.Source != "file" {
		t.Errorf("%s %+v", got, o)
	}
	if o, got := listed(t, e, "", 1); len(o.Services) != 1 || o.Omitted == 0 {
		t.Errorf("%s, %d omitted", got, o.Omitted)
	}
	if _, got := listed(t, e, "other", 100); !strings.Contains(got, "secret probabilistic") || strings.Contains(got, "zebra") {
		t.Errorf("other tenant: %s", got)
	}
}

// The probabilities of operations are kept over time, for each tenant, up to a limit.
func TestProbabilityHistory(t *testing.T) {
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	key := func(operation string) sampling.OperationKey {
		return sampling.OperationKey{Service: "cart", Operation: operation}
	}
	h := newProbabilityHistory(3)
	for i, p := range []float64{0.5, 0.25, 0.125, 0.0625} {
		c := &sampling.Calculation{At: at.Add(time.Duration(i) * time.Minute), Decisions: []sampling.Decision{
			{OperationKey: key("always"), Probability: p, Before: 2 * p, QPS: 4}}}
		if i < 1 {
			c.Decisions = append(c.Decisions, sampling.Decision{OperationKey: key("gone"), Probability: 1, Before: 1})
		}
		if i == 3 {
			c.Decisions = append(c.Decisions, sampling.Decision{OperationKey: key("new"), Probability: 1, Before: 1})
		}
		h.addCalculation(c)
		h.addCalculation(c) // read again
	}
	got := h.points(key("always"))
	if len(got) != 3 || got[0].Probability != 0.25 || !got[0].At.Equal(at.Add(time.Minute)) || got[2].Rate != 32 {
		t.Errorf("always: %+v", got)
	}
	if got := h.points(key("new")); len(got) != 1 || !got[0].At.Equal(at.Add(3*time.Minute)) {
		t.Errorf("new: %+v", got)
	}
	if len(h.all) != 2 {
		t.Errorf("operations %v", h.all)
	}
	none := newProbabilityHistory(0)
	none.addCalculation(&sampling.Calculation{At: at, Decisions: []sampling.Decision{{OperationKey: key("a"), Probability: 1}}})
	if len(none.all) != 0 || len(none.times) != 0 {
		t.Error("history of size 0 keeps something")
	}
}

// Adaptive sampling lists the operations of the tenant with their past probabilities.
func TestListAdaptive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startAdaptive(t, sampling.NewMemory(time.Now), &reports{}, func(*AdaptiveConfig) {})
		defer stop(t, e)
		for range 6 {
			observe(e, 600, 0.001)
		}
		o, got := listed(t, e, "", 100)
		if o.Adaptive == nil || len(o.Adaptive.Operations) != 1 || !strings.HasPrefix(got, "cart probabilistic") {
			t.Fatalf("%s %+v", got, o.Adaptive)
		}
		op := o.Adaptive.Operations[0]
		if op.Operation != "GET /" || len(op.Points) < 2 || op.Points[len(op.Points)-1].Probability > op.Probability*1.001 ||
			!op.Points[0].At.Before(op.Points[1].At) {
			t.Errorf("%+v", op)
		}
		if o, _ := listed(t, e, "another", 100); len(o.Adaptive.Operations) != 0 || len(o.Services) != 0 {
			t.Errorf("other tenant: %+v", o)
		}
	})
}

// The points of all operations are limited: the busiest operations have their newest ones.
func TestPointsAreLimited(t *testing.T) {
	s := &adaptiveSource{past: newProbabilityHistory(100)}
	c := sampling.Calculation{Decisions: make([]sampling.Decision, 500)}
	operations := make([]sampling.OperationHistory, len(c.Decisions))
	for i := range c.Decisions {
		name := fmt.Sprint(i)
		c.Decisions[i] = sampling.Decision{OperationKey: sampling.OperationKey{Service: "shop", Operation: name}, Probability: 0.5}
		operations[i] = sampling.OperationHistory{Service: "shop", Operation: name}
	}
	for i := range 100 {
		c.At = time.Unix(int64(i+1), 0)
		s.past.addCalculation(&c)
	}
	s.addPoints("", operations)
	total := 0
	for i := range operations {
		total += len(operations[i].Points)
	}
	first := operations[0].Points
	if total != maxPoints || len(first) != minPointsOfEach || first[len(first)-1].At != c.At || operations[499].Points == nil {
		t.Errorf("%d points, %d of the first operation, want %d and %d", total, len(first), maxPoints, minPointsOfEach)
	}
}
