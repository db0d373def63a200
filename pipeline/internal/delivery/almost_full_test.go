package delivery_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/status"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// An exporter is degraded while its queue is more than 90 % full, and until it is at most 80 % full
// again. The process stays ready.
func TestAlmostFullQueue(t *testing.T) {
	for _, storage := range []string{"", "storage: disk, "} {
		synctest.Test(t, func(t *testing.T) {
			let := make(chan struct{})
			p, source := hosttest.StartNetOn(t, vfstest.NewMem(), "sending_queue: {"+storage+"num_consumers: 1, queue_size: 20}", "data_dir: data",
				func(ctx context.Context, _ *otlpdata.Batch) error {
					select {
					case <-let:
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
			var got []string
			note := func(n int) {
				synctest.Wait()
				s := p.Status()
				exporter := s.Pipelines[0].Components[1]
				got = append(got, fmt.Sprint(n, " ", exporter.State, " ", exporter.Reason))
				if !p.Health().Ready || (s.State == status.Degraded) != (exporter.State == status.Degraded) {
					t.Errorf("%d batches: %+v", n, s)
				}
			}
			for n := 1; n <= 20; n++ {
				if err := source.Consume(t.Context(), hosttest.OneSpan("a")); err != nil {
					t.Fatal(err)
				}
				if n >= 18 {
					note(n)
				}
			}
			for n := 19; n >= 15; n-- {
				let <- struct{}{}
				note(n)
			}
			close(let)
			const full = " degraded sending_queue is more than 90 % full"
			want := []string{"18 ok ", "19" + full, "20" + full, "19" + full, "18" + full, "17" + full, "16 ok ", "15 ok "}
			if !slices.Equal(got, want) {
				t.Errorf("%s: got %q\nwant %q", storage, got, want)
			}
		})
	}
}
