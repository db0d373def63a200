package client_test

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func TestNextHopReportsThreeConsecutiveFailures(t *testing.T) {
	fix := newFixture(t)
	hop := client.NewNextHop(fix.set)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	down := errors.New("down")
	f := func(ctx context.Context, err error, wantReports int) {
		t.Helper()
		if got := hop.Record(ctx, err); got != err {
			t.Errorf("outcome %v, want %v", got, err)
		}
		if len(fix.reports) != wantReports {
			t.Errorf("reported %v, want %d reports", fix.reports, wantReports)
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
	if fix.reports[0] != down || fix.reports[1] != nil {
		t.Errorf("reported %v", fix.reports)
	}
}

// Rejections of the data do not count against the next hop; rejections of the sender do.
func TestNextHopIsHealthyAfterRejections(t *testing.T) {
	for _, c := range []struct {
		err      error
		degraded bool
	}{
		{pipeline.Permanent(errors.New("invalid span")), false},
		{&otlpdata.LimitError{Limit: "spans", Max: 1}, false},
		{&otlpdata.LimitError{Limit: "bytes", Max: 1, TooLarge: true}, false},
		{status.Error(codes.InvalidArgument, "invalid span"), false},
		{status.Error(codes.ResourceExhausted, "message is too large"), false},
		{status.Error(codes.Unauthenticated, "no token"), true},
		{status.Error(codes.PermissionDenied, "wrong tenant"), true},
		{status.Error(codes.Unimplemented, "unknown service"), true},
		{status.Error(codes.Internal, "bug"), true},
		{pipeline.Overloaded(errors.New("full"), 0), true},
		{pipeline.Unavailable(errors.New("away"), 0), true},
	} {
		fix := newFixture(t)
		hop := client.NewNextHop(fix.set)
		for range 5 {
			hop.Record(t.Context(), c.err)
		}
		if degraded := len(fix.reports) > 0; degraded != c.degraded {
			t.Errorf("after 5 times %v: degraded is %t", c.err, degraded)
		}
		hop.Record(t.Context(), status.Error(codes.InvalidArgument, "invalid span"))
		if c.degraded && (len(fix.reports) != 2 || fix.reports[1] != nil) {
			t.Errorf("a rejection after %v: reported %v, want a recovery", c.err, fix.reports)
		}
	}
}

func TestNextHopPartial(t *testing.T) {
	fix := newFixture(t)
	hop := client.NewNextHop(fix.set)
	var partial *pipeline.Partial
	if err := hop.Partial(3, "too old"); !errors.As(err, &partial) || partial.Rejected != 3 || !pipeline.IsPermanent(err) ||
		err.Error() != "3 items rejected: rejected by the next hop: too old" {
		t.Errorf("error %v", err)
	}
	if err := hop.Partial(1, ""); err == nil || err.Error() != "1 items rejected: rejected by the next hop: no reason given" {
		t.Errorf("error %v", err)
	}
	warnings := func() int { return fix.logs.FilterMessage("next hop accepted a request with a warning").Len() }
	for range 3 {
		if err := hop.Partial(0, "almost full"); err != nil {
			t.Errorf("error %v", err)
		}
	}
	if n := warnings(); n != 1 {
		t.Errorf("%d warnings within a minute", n)
	}
	fix.advance()
	if err := hop.Partial(0, "full"); err != nil || warnings() != 2 {
		t.Errorf("error %v, %d warnings", err, warnings())
	}
	if last := fix.logs.All()[1].ContextMap(); last["warning"] != "full" || last["not-logged"] != int64(2) {
		t.Errorf("warned %v", last)
	}
	if err := hop.Partial(0, ""); err != nil || warnings() != 2 {
		t.Errorf("error %v, %d warnings", err, warnings())
	}
	c := client.NextHopConfig{TenantHeader: "x tenant"}
	expectErrors(t, `tenant_header: "x tenant" is not a valid header name; use letters, digits, -, _ and .`, c.Validate())
	c = client.DefaultNextHopConfig()
	expectErrors(t, "", c.Validate())
}
