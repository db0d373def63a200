package uiapi

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/live"
	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/status"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// holder is a store that tells what it holds.
type holder struct {
	core.Store
	usage tracestore.Usage
	err   error
}

// Usage implements tracestore.UsageReporter.
func (h *holder) Usage(context.Context, string) (tracestore.Usage, error) { return h.usage, h.err }

func testIntake() status.Intake {
	refused := &status.Refusal{Reason: "undecodable", At: querytest.Noon.Add(-time.Minute)}
	return status.Intake{Since: querytest.Start, Dropped: 4, Receivers: []status.Receiver{
		{Component: "otlp", Transport: "grpc", Addresses: []string{"127.0.0.1:4317"}, Received: 100, Refused: 7},
		{Component: "otlp", Transport: "http", Addresses: []string{"127.0.0.1:4318"}, Received: 11, RefusedRequests: 2, Refusal: refused},
		{Component: "thriftudp", Transport: "udp", Addresses: []string{"127.0.0.1:6831", "127.0.0.1:6832"}},
	}}
}

// The response has everything that the process and the store tell. Where there are tenants, it has
// nothing that depends on the data of all of them.
func TestIngest(t *testing.T) {
	store := &holder{Store: querytest.NewStore(querytest.Shop()),
		usage: tracestore.Usage{Oldest: querytest.Start, OldestStart: 5, NewestStart: 7, Bytes: 1 << 20, MaxBytes: 50 << 30,
			Retention: 72 * time.Hour}}
	for file, o := range map[string]Options{
		"ingest":         {Intake: testIntake},
		"ingest-tenants": {Intake: testIntake, Tenancy: true},
		"ingest-query":   {Intake: func() status.Intake { return status.Intake{Since: querytest.Start} }},
	} {
		b, _ := querytest.NewBackend(t, store)
		w := querytest.Ask(t, httpapi.NewMux("", New(b, o).Routes()), http.MethodGet, "/api/ui/v1/ingest")
		golden.Check(t, "testdata/ingest/"+file+".json", w.Body.String())
	}
}

// What was received is shown even if the store fails.
func TestIngestOfBrokenStore(t *testing.T) {
	for err, want := range map[error]string{
		querytest.ErrStore:        "result is incomplete: the contents of the store are unknown: disk on fire",
		tracestore.ErrUnsupported: "",
	} {
		b, _ := querytest.NewBackend(t, &holder{Store: querytest.NewStore(querytest.Shop()), err: err})
		h := httpapi.NewMux("", New(b, Options{Tail: live.DefaultConfig(), Intake: testIntake}).Routes())
		w := querytest.Ask(t, h, http.MethodGet, "/api/ui/v1/ingest")
		var a struct {
			Data   struct{ Received int }
			Errors []struct{ Msg string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusOK || a.Data.Received != 111 {
			t.Fatalf("%d %v %s", w.Code, err, w.Body)
		}
		if (want == "") != (len(a.Errors) == 0) || want != "" && a.Errors[0].Msg != want {
			t.Errorf("errors %v, want %q", a.Errors, want)
		}
	}
}
