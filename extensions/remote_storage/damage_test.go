package remotestorage

import (
	"iter"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/translate/remotestore"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestDamagedTraces: the sound parts of damaged traces are sent, with a trailer that clients who
// know it show as a warning. If there are none, the call fails with DataLoss.
func TestDamagedTraces(t *testing.T) {
	for _, pieces := range []int{0, 2} {
		var all iter.Seq2[tracestore.Trace, error] = func(yield func(tracestore.Trace, error) bool) {
			for range pieces {
				if !yield(tracestore.Trace{Spans: otlpdata.FromStored(nil, otlpdata.Meta{})}, nil) {
					return
				}
			}
			yield(tracestore.Trace{}, tracestore.Damaged("block 3 is gone", nil))
		}
		var trailer metadata.MD
		sent := 0
		err := traces(t.Context(), all, func(md metadata.MD) { trailer = md }, func(*otlpdata.Batch) error {
			sent++
			return nil
		})
		warned := trailer.Get(remotestore.IncompleteTrailer)
		switch {
		case sent != pieces:
			t.Errorf("%d pieces were sent, want %d", sent, pieces)
		case pieces == 0 && status.Code(err) != codes.DataLoss:
			t.Errorf("nothing to send: %v, want DataLoss", err)
		case pieces > 0 && (err != nil || len(warned) != 1 || warned[0] != "block 3 is gone"):
			t.Errorf("%v, trailer %v", err, trailer)
		}
	}
}
