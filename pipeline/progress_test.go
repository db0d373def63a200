package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// An exporter finds in each attempt what it left in the one before, and nothing of other batches.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var found []int
		_, source := startNet(t, "", func(ctx context.Context, _ *otlpdata.Batch) error {
			p := pipeline.ProgressOf(ctx)
			found = append(found, p.Requests)
			if p.Requests++; p.Requests < 3 {
				return errors.New("down")
			}
			return nil
		})
		for range 2 {
			if err := source.Consume(t.Context(), oneSpan("a")); err != nil {
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
