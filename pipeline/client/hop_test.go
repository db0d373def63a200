package client_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
)

func TestHopReportsThreeFailuresInARow(t *testing.T) {
	w := newWorld(t)
	hop := client.NewHop(w.set)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	down := errors.New("down")
	f := func(ctx context.Context, err error, wantReports int) {
		t.Helper()
		if got := hop.Settle(ctx, err); got != err {
			t.Errorf("outcome %v, want %v", got, err)
		}
		if len(w.reports) != wantReports {
			t.Errorf("reported %v, want %d reports", w.reports, wantReports)
		}
	}
	f(t.Context(), down, 0)
	f(t.Context(), down, 0)
	f(t.Context(), nil, 0)
	f(t.Context(), down, 0)
	f(t.Context(), down, 0)
	f(canceled, context.Canceled, 0)
	f(t.Context(), down, 1)
	f(t.Context(), down, 1)
	f(t.Context(), &pipeline.Partial{Rejected: 1, Err: down}, 2)
	f(t.Context(), nil, 2)
	if w.reports[0] != down || w.reports[1] != nil {
		t.Errorf("reported %v", w.reports)
	}
}

func TestHopPartial(t *testing.T) {
	w := newWorld(t)
	hop := client.NewHop(w.set)
	var partial *pipeline.Partial
	if err := hop.Partial(3, "too old"); !errors.As(err, &partial) || partial.Rejected != 3 || !pipeline.IsPermanent(err) ||
		err.Error() != "3 spans rejected: rejected by the next hop: too old" {
		t.Errorf("error %v", err)
	}
	if err := hop.Partial(1, ""); err == nil || err.Error() != "1 spans rejected: rejected by the next hop: the next hop gave no reason" {
		t.Errorf("error %v", err)
	}
	warnings := func() int { return w.logs.FilterMessage("the next hop took the spans with a warning").Len() }
	for range 3 {
		if err := hop.Partial(0, "almost full"); err != nil {
			t.Errorf("error %v", err)
		}
	}
	if n := warnings(); n != 1 {
		t.Errorf("%d warnings within a minute", n)
	}
	w.later()
	if err := hop.Partial(0, "full"); err != nil || warnings() != 2 {
		t.Errorf("error %v, %d warnings", err, warnings())
	}
	if last := w.logs.All()[1].ContextMap(); last["warning"] != "full" || last["warnings-not-logged"] != int64(2) {
		t.Errorf("warned %v", last)
	}
	if err := hop.Partial(0, ""); err != nil || warnings() != 2 {
		t.Errorf("error %v, %d warnings", err, warnings())
	}
	c := client.HopConfig{TenantHeader: "x tenant"}
	expectErrors(t, `tenant_header: "x tenant" is no name of a header: letters, digits, -, _ and . make one`, c.Validate())
	c = client.DefaultHopConfig()
	expectErrors(t, "", c.Validate())
}
