package grpc

import (
	"errors"
	"net/http"
	"testing"

	"github.com/tracing-backend/tracing/internal/translate/storewire"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// A message of the server above the limit is not an overload, which would be retried in vain.
func TestAnswerAboveLimit(t *testing.T) {
	addr, _ := new(fake).serve(t, "localhost:0", &storeServer{version: storewire.Version,
		names: func(send send) error { return send(make([]byte, 2<<20)) }})
	e := start(t, addr, func(c *config) { c.MaxRecvMsgSize = 1 })
	_, _, err := e.Services(t.Context(), "", tracestore.NameQuery{})
	if code, _ := pipeline.HTTPStatus(err); !errors.Is(err, tracestore.ErrAnswerTooLarge) || code == http.StatusTooManyRequests {
		t.Errorf("status %d, %v", code, err)
	}
}

// Answers that take much more memory than their encoded size, or never end, are charged before they
// are decoded, so that they end when the memory of queries is used up.
func TestMemoryOfHostileStores(t *testing.T) {
	const memory, most = 16 << 20, 64 // at most 64 messages of 1 MiB
	sent := 0
	addr, _ := new(fake).serve(t, "localhost:0", &storeServer{version: storewire.Version,
		names: func(send send) error {
			return send(message(storewire.Names{Names: make([]string, 2_000_000)})) // 2 MB, decoded 32 MB
		},
		outline: func(send send) error {
			for sent < most {
				sent++
				if err := send(message([]tracestore.SummarySpan{{Name: string(make([]byte, 1<<20))}})); err != nil {
					return err
				}
			}
			return nil
		}})
	e := start(t, addr, nil)
	budget := pipeline.NewQueryBudget(memory)
	account, err := budget.Reserve(0)
	if err != nil {
		t.Fatal(err)
	}
	ctx := tracestore.WithAccount(t.Context(), account)
	if names, _, err := e.Services(ctx, "", tracestore.NameQuery{}); !tracestore.IsOutOfMemory(err) {
		t.Errorf("giant list: %d names, %v", len(names), err)
	}
	hold := func(int, int) error { return nil }
	take := func([]tracestore.SummarySpan) error { return nil }
	sent = 0
	if err := e.Outline(ctx, "", otlpdata.TraceID{1}, 0, hold, take); !tracestore.IsOutOfMemory(err) {
		t.Errorf("outline with endless texts: %v", err)
	}
	if used := budget.Used(); used != 0 {
		t.Errorf("%d bytes are still reserved", used)
	}
}
