package loadbalancing

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Two exporters without coordination send each trace to the same backend, whatever the order of
// their lists and the grouping of the spans.
func TestEveryTraceHasOneBackend(t *testing.T) {
	hops := []*hop{startHop(t), startHop(t), startHop(t)}
	first := start(t, fixture(), static(hops...))
	slices.Reverse(hops)
	second := start(t, fixture(), static(hops...))
	var want []string
	for i := range 10 {
		b := batch(t, "acme", 40, 1+i%3)
		e := []*exporter{first, second}[i%2]
		if err := e.Consume(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		want = append(want, names(t, b)...)
	}
	where := map[otlpdata.TraceID]int{}
	var got []string
	for i, h := range hops {
		got = append(got, h.names()...)
		for id := range h.traces {
			if before, seen := where[id]; seen {
				t.Errorf("trace %s is at backends %d and %d", id, before, i)
			}
			where[id] = i
		}
		if len(h.traces) == 0 || slices.ContainsFunc(h.tenants, func(s string) bool { return s != "acme" }) {
			t.Errorf("backend %d: %d traces, tenants %q", i, len(h.traces), h.tenants)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%d spans arrived, want %d", len(got), len(want))
	}
}

// A part that fails is resent; those that were accepted are not.
func TestOnlyFailedPartsAreSentAgain(t *testing.T) {
	up, down := startHop(t), startHop(t)
	f := fixture()
	e := start(t, f, static(up, down))
	down.answer(status.Error(codes.Unavailable, "restarting"))
	b := batch(t, "acme", 40, 2)
	var p pipeline.Progress
	ctx := pipeline.WithProgress(t.Context(), &p)
	for range 3 {
		if err := e.Consume(ctx, b); err == nil || pipeline.IsPermanent(err) || !strings.Contains(err.Error(), down.Addr) {
			t.Fatalf("error %v", err)
		}
	}
	if accepted := len(up.names()); up.requests != 1 || accepted == 0 || p.Taken != accepted || p.Remaining.Len() != b.Len()-accepted {
		t.Errorf("%d requests, %d spans accepted; progress %+v", up.requests, accepted, p)
	}
	down.answer(nil)
	if err := e.Consume(ctx, b); err != nil {
		t.Error(err)
	}
	if all := slices.Concat(up.names(), down.names()); len(all) != b.Len() || up.requests != 1 {
		t.Errorf("%d spans arrived, %d requests", len(all), up.requests)
	}
	got := f.Samples(t, "tracing_load_balancing_spans_total", "backend", "outcome")
	if got[up.Addr+" sent"] != float64(len(up.names())) || got[down.Addr+" sent"] != float64(len(down.names())) ||
		got[down.Addr+" failed"] != float64(3*len(down.names())) {
		t.Errorf("counted %v", got)
	}
	if used := f.Settings.Budget.Used(); used != 0 {
		t.Errorf("%d bytes are still reserved", used)
	}
}

// Remaining spans go to the backends that they belong to by then.
func TestRemainingSpansAreRoutedAgain(t *testing.T) {
	up, down := startHop(t), startHop(t)
	e := start(t, fixture(), static(up, down))
	down.answer(status.Error(codes.Unavailable, "gone"))
	b := batch(t, "", 40, 1)
	ctx := pipeline.WithProgress(t.Context(), new(pipeline.Progress))
	if err := e.Consume(ctx, b); err == nil {
		t.Fatal("no error")
	}
	if changed, err := e.backends.update(t.Context(), []string{up.Addr}); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if err := e.Consume(ctx, b); err != nil {
		t.Fatal(err)
	}
	if got, want := up.names(), names(t, b); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The class of an error and the requested delay come from the parts.
func TestErrors(t *testing.T) {
	one, two := startHop(t), startHop(t)
	e := start(t, fixture(), static(one, two))
	later, err := status.New(codes.ResourceExhausted, "full").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(7 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	invalid, unavailable := status.Error(codes.InvalidArgument, "invalid"), status.Error(codes.Unavailable, "down")
	b := batch(t, "", 40, 1)
	f := func(first, second error, code int, delay time.Duration) {
		t.Helper()
		one.answer(first)
		two.answer(second)
		if got, after := pipeline.HTTPStatus(e.Consume(t.Context(), b)); got != code || after != delay {
			t.Errorf("%v, %v: returned as %d, retry after %s; want %d, %s", first, second, got, after, code, delay)
		}
	}
	f(nil, nil, 200, 0)
	f(invalid, invalid, 400, 0)
	f(unavailable, later.Err(), 429, 7*time.Second)
	f(later.Err(), unavailable, 429, 7*time.Second)
	f(invalid, later.Err(), 429, 7*time.Second)

	one.answer(invalid)
	two.answer(nil)
	var partial *pipeline.Partial
	before := len(two.names())
	if err := e.Consume(t.Context(), b); !errors.As(err, &partial) || partial.Rejected != b.Len()-(len(two.names())-before) {
		t.Errorf("error %v", err)
	}
	one.respond = func(int) (int, error) { return 2, nil }
	two.respond = func(int) (int, error) { return 3, nil }
	if err := e.Consume(t.Context(), b); !errors.As(err, &partial) || partial.Rejected != 5 {
		t.Errorf("error %v", err)
	}
	all := func(spans int) (int, error) { return spans, nil }
	one.respond, two.respond = all, all
	if err := e.Consume(t.Context(), b); !errors.As(err, &partial) || partial.Rejected != b.Len() {
		t.Errorf("error %v", err)
	}
}

// A backend that fails is reported; the report ends when it works again or is removed.
func TestReports(t *testing.T) {
	up, down := startHop(t), startHop(t)
	f := fixture()
	e := start(t, f, static(up, down))
	down.answer(status.Error(codes.Unavailable, "restarting"))
	send := func(times int) {
		for range times {
			e.Consume(t.Context(), batch(t, "", 40, 1)) //nolint:errcheck // the reports are checked
		}
	}
	send(4)
	if r := f.Reports(); len(r) != 1 || !strings.HasPrefix(r[0].Error(), "1 of 2 backends do not accept spans; sending to "+down.Addr) {
		t.Fatalf("reported %v", r)
	}
	down.answer(nil)
	send(1)
	if r := f.Reports(); len(r) != 2 || r[1] != nil {
		t.Fatalf("reported %v", r)
	}
	down.answer(status.Error(codes.Unavailable, "restarting"))
	send(3)
	if _, err := e.backends.update(t.Context(), []string{up.Addr}); err != nil {
		t.Fatal(err)
	}
	if r := f.Reports(); len(r) != 4 || r[3] != nil {
		t.Fatalf("reported %v", r)
	}
	if got := f.Samples(t, "tracing_load_balancing_spans_total", "backend"); len(got) != 1 {
		t.Errorf("a removed backend still has metrics: %v", got)
	}
}

// The connection of a removed backend stays open until its calls have ended.
func TestRemovedBackendFinishesItsCalls(t *testing.T) {
	hop := startHop(t)
	entered, release := make(chan struct{}), make(chan struct{})
	hop.respond = func(int) (int, error) {
		close(entered)
		<-release
		return 0, nil
	}
	other := startHop(t)
	e := start(t, fixture(), static(hop))
	done := make(chan error, 1)
	go func() { done <- e.Consume(t.Context(), batch(t, "", 1, 1)) }()
	<-entered
	if _, err := e.backends.update(t.Context(), []string{other.Addr}); err != nil {
		t.Fatal(err)
	}
	if err := e.Consume(t.Context(), batch(t, "", 1, 1)); err != nil || len(other.names()) != 1 {
		t.Errorf("error %v, %q arrived", err, other.names())
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestNoBackends(t *testing.T) {
	f := fixture()
	f.Settings.Env.LookupHost = func(context.Context, string) ([]string, error) { return nil, errors.New("no such host") }
	e := start(t, f, func(c *config) {
		c.Resolver.DNS.TurnOn().(*dnsConfig).Hostname = "gateways.test"
	})
	err := e.Consume(t.Context(), batch(t, "", 1, 1))
	if !errors.Is(err, errNoBackends) || !pipeline.IsTemporary(err) {
		t.Errorf("error %v", err)
	}
	if r := f.Reports(); len(r) != 1 || r[0].Error() != "resolving gateways.test: no such host; using the backends of the last response (0)" {
		t.Errorf("reported %v", r)
	}
}

// Memory for the parts of a batch is reserved. A batch of one backend needs none.
func TestMemoryOfParts(t *testing.T) {
	f := fixture()
	e := start(t, f, static(startHop(t), startHop(t)))
	many, one := batch(t, "", 40, 2), batch(t, "", 1, 20)
	f.Settings.Budget.SetLimit(int64(many.Size()))
	held, err := f.Settings.Budget.Reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Consume(t.Context(), many); !errors.Is(err, pipeline.ErrOverBudget) {
		t.Errorf("error %v", err)
	}
	if err := e.Consume(t.Context(), one); err != nil {
		t.Error(err)
	}
	held.Release()
	if err := e.Consume(t.Context(), many); err != nil {
		t.Error(err)
	}
	f.Settings.Budget.SetLimit(int64(many.Size()) - 1)
	if err := e.Consume(t.Context(), many); err != nil {
		t.Errorf("error %v", err)
	}
}
