package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Each attempt has the progress of the previous attempt of the same batch.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var found []int
		_, source := hosttest.StartNet(t, "", func(ctx context.Context, _ *otlpdata.Batch) error {
			p := pipeline.ProgressOf(ctx)
			found = append(found, p.Requests)
			if p.Requests++; p.Requests < 3 {
				return errors.New("down")
			}
			return nil
		})
		for range 2 {
			if err := source.Consume(t.Context(), hosttest.OneSpan("a")); err != nil {
				t.Error(err)
			}
		}
		if len(found) != 6 || found[0] != 0 || found[1] != 1 || found[2] != 2 || found[3] != 0 {
			t.Errorf("found %v", found)
		}
	})
	if p := pipeline.ProgressOf(t.Context()); p == nil || *p != (pipeline.Progress{}) {
		t.Errorf("outside of a delivery: %v", p)
	}
}

// When a delivery is given up after some spans were accepted, only the others are dropped. A caller
// without a queue gets an error for all spans and resends all of them.
func TestProgressOfWhatIsGivenUp(t *testing.T) {
	const retries = "retry_on_failure: {initial_interval: 1s, max_elapsed_time: 2s}"
	for settings, want := range map[string]string{
		retries:                       "in:3 refused:3 retries:1 sent:0",
		retries + ", sending_queue: ": "dropped:2 in:3 queued:0 retries:1 sent:1",
	} {
		synctest.Test(t, func(t *testing.T) {
			p, source := hosttest.StartNet(t, settings, func(ctx context.Context, _ *otlpdata.Batch) error {
				pipeline.ProgressOf(ctx).Taken = 1
				return errors.New("down")
			})
			source.Consume(t.Context(), manySpans(t, "a", 3)) //nolint:errcheck // the counters are checked
			if err := p.End(); err != nil {
				t.Error(err)
			}
			hosttest.Expect(t, p.NetCounts(t), want)
			for _, line := range p.Logged(t, "spans were dropped") {
				if fmt.Sprintf("%v %v", line["spans"], line["reason"]) != "2 unavailable" {
					t.Errorf("%v", line)
				}
			}
		})
	}
}
