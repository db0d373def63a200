package grpc

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/translate/remotestore"
)

// TestIncompleteTrace: a trailer and the status DataLoss say that parts of a trace are damaged.
// Other errors fail the read.
func TestIncompleteTrace(t *testing.T) {
	down := errors.New("connection refused")
	for _, c := range []struct {
		trailer metadata.MD
		err     error
		want    string
		failed  error
	}{
		{nil, nil, "", nil},
		{metadata.Pairs(remotestore.IncompleteTrailer, "block 3 is gone"), nil, "block 3 is gone", nil},
		{nil, status.Error(codes.DataLoss, "block 4 is gone"), "block 4 is gone", nil},
		{nil, down, "", down},
	} {
		if got, err := incompleteTrace(c.trailer, c.err); got != c.want || !errors.Is(err, c.failed) || (err == nil) != (c.failed == nil) {
			t.Errorf("incompleteTrace(%v, %v) = %q, %v; want %q, %v", c.trailer, c.err, got, err, c.want, c.failed)
		}
	}
}
