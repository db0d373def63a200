package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
)

// Traffic is sent in rounds: a round holds whole traces that start now.
const (
	roundInterval   = 2 * time.Second
	spansPerRequest = 100
)

// sendTraffic sends spans to the collectors in turn until ctx is done. The returned function waits
// for the end, prints how many spans were acknowledged, and returns an error if any were refused.
func sendTraffic(ctx context.Context, spansPerSecond int, collectors []string) (wait func() error) {
	if spansPerSecond <= 0 {
		return func() error { return nil }
	}
	ctx, stop := context.WithCancel(ctx)
	results := make([]load.Result, len(collectors))
	errs := make([]error, len(collectors))
	var sending sync.WaitGroup
	for i, target := range collectors {
		sending.Go(func() {
			results[i], errs[i] = load.Run(context.WithoutCancel(ctx), load.Options{Target: target, Retry: time.Minute},
				rounds(ctx, uint64(i), spansPerSecond/len(collectors)))
		})
	}
	return func() error {
		stop()
		sending.Wait()
		acked, spans := 0, 0
		for _, r := range results {
			acked, spans = acked+r.Acked, spans+r.Spans
		}
		fmt.Printf("sent %d spans, %d were acknowledged\n", spans, acked)
		if acked < spans {
			errs = append(errs, errors.New("not all spans were acknowledged; see the logs of the collectors"))
		}
		return errors.Join(errs...)
	}
}

// rounds iterates over requests until ctx is done.
func rounds(ctx context.Context, seed uint64, spansPerSecond int) iter.Seq[bench.Request] {
	return func(yield func(bench.Request) bool) {
		tick := time.NewTicker(roundInterval)
		defer tick.Stop()
		for round := uint64(0); ctx.Err() == nil; round++ {
			d := bench.New(seed+2*round, time.Now())
			for r := range d.Requests(spansPerSecond*int(roundInterval/time.Second), spansPerRequest) {
				if !yield(r) {
					return
				}
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}
}
