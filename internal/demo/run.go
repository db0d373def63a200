package demo

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const (
	// lag is the time by which the virtual clock is behind. All spans of a second, including the
	// spans of its slowest request, end within this time.
	lag = 5 * time.Second
	// flushTimeout is the maximum time for sending the remaining spans at the end.
	flushTimeout = 30 * time.Second
	// deployAfter is the time from the beginning to the first bad version without a backfill;
	// deployShare is the share of a backfill before it.
	deployAfter, deployShare = 2 * time.Minute, 0.875
)

// Options are the settings of a run.
type Options struct {
	OTLP   string      // URL of an OTLP receiver over HTTP, without /v1/traces
	Direct bool        // do not use the proxy of the environment
	Header http.Header // of all requests
	Rate   float64     // requests of users per second
	Seed   uint64      // the same seed and time give the same traces
	// Backfill is the time before now for which traces are sent immediately.
	Backfill time.Duration
	// DeployAfter is the time from the first request to the first bad version. 0: 2 minutes
	// without a backfill, otherwise seven eighths of it.
	DeployAfter time.Duration
	Once        bool // end after the backfill
	// Backfilled is called after all spans of the backfill have been sent; it may be nil.
	Backfilled func(Summary)
	Now        func() time.Time
}

// Summary is what a run has done.
type Summary struct {
	Requests     int // of users
	Spans        int // of Requests
	Acknowledged int // of Spans
	Deployed     time.Time
	Version      string // the bad version deployed at that time
	Err          error  // error of the last request that failed, or of sending the last spans
}

// String returns a line about the spans.
func (s Summary) String() string {
	text := fmt.Sprintf("%d requests, %d spans sent, %d acknowledged", s.Requests, s.Spans, s.Acknowledged)
	if lost := s.Spans - s.Acknowledged; lost > 0 {
		text += fmt.Sprintf(", %d not acknowledged: %v", lost, s.Err)
	}
	return text
}

// run is the state of [Run].
type run struct {
	*Options
	telemetry *telemetry
	shop      *Shop
	deployed  time.Time
}

// Run sends traces until ctx ends, or until the end of the backfill if the options say so. It then
// sends the remaining spans, and returns a summary. The error says why no spans were acknowledged
// at all.
func Run(ctx context.Context, o Options) (Summary, error) {
	end := o.Now().Add(-lag).Truncate(time.Second)
	begin := end.Add(-o.Backfill).Truncate(time.Second)
	r, err := newRun(context.WithoutCancel(ctx), &o, begin)
	if err != nil {
		return Summary{}, err
	}
	if err = r.past(ctx, begin, end); err == nil && !o.Once {
		err = r.present(ctx, end)
	}
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	s := r.finish(flush)
	if err == nil && s.Acknowledged == 0 {
		err = s.Err
	}
	return s, err
}

// newRun returns a run whose first request is at begin or later.
func newRun(ctx context.Context, o *Options, begin time.Time) (*run, error) {
	t, err := newTelemetry(ctx, o)
	if err != nil {
		return nil, err
	}
	r := &run{Options: o, telemetry: t, deployed: begin.Add(o.deployAfter()).Truncate(time.Second)}
	r.shop = newShop(o, r.deployed, t.ids, t.tracer)
	return r, nil
}

// finish sends the remaining spans until ctx ends, and returns a summary.
func (r *run) finish(ctx context.Context) Summary {
	err := r.telemetry.close(ctx)
	s := r.summary()
	if err != nil {
		s.Err = err
	}
	return s
}

func (o *Options) deployAfter() time.Duration {
	switch {
	case o.DeployAfter > 0:
		return o.DeployAfter
	case o.Backfill > 0:
		return time.Duration(deployShare * float64(o.Backfill))
	}
	return deployAfter
}

// past sends the traces of the backfill.
func (r *run) past(ctx context.Context, begin, end time.Time) error {
	for at := begin; at.Before(end) && ctx.Err() == nil; at = at.Add(time.Second) {
		if err := r.second(at); err != nil {
			return err
		}
	}
	if r.Backfilled == nil || ctx.Err() != nil {
		return nil
	}
	if err := r.telemetry.processor.ForceFlush(ctx); err != nil {
		return nil // ctx has ended
	}
	r.Backfilled(r.summary())
	return r.unreachable()
}

// present sends the traces of each second after it has passed.
func (r *run) present(ctx context.Context, begin time.Time) error {
	for at := begin; ; at = at.Add(time.Second) {
		timer := time.NewTimer(at.Add(time.Second + lag).Sub(r.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		if err := r.second(at); err != nil {
			return err
		}
	}
}

// second sends the traces of a second, unless the receiver has never acknowledged any.
func (r *run) second(at time.Time) error {
	r.shop.second(at)
	return r.unreachable()
}

// unreachable returns the error of the first request if none has succeeded.
func (r *run) unreachable() error {
	if c := r.telemetry.exporter.counts(); c.acknowledged == 0 {
		return c.err
	}
	return nil
}

func (r *run) summary() Summary {
	c := r.telemetry.exporter.counts()
	return Summary{Requests: r.shop.requests, Spans: r.telemetry.ended, Acknowledged: c.acknowledged, Err: c.err,
		Deployed: r.deployed, Version: release(r.deployed, r.deployed)}
}
