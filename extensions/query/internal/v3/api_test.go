package v3

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAPI(t *testing.T) {
	g := querytest.Golden{
		Routes: func(b *core.Backend) http.Handler { return httpapi.NewMux("", New(b).Routes()) }, Store: querytest.ShopStore,
		Headers: []string{"Content-Type", "X-Content-Type-Options"},
	}
	g.Run(t, "testdata/*.txt")
}

// TestPagesWhileSpansArrive reads pages while spans are stored. Each trace of the first moment is
// in one page, and no trace is in two.
func TestPagesWhileSpansArrive(t *testing.T) {
	spans := func(ids []byte, second func(id byte) int) *otlpdata.Batch {
		td := ptrace.NewTraces()
		for _, id := range ids {
			at := time.Duration(second(id)) * time.Second
			querytest.AddSpan(querytest.AddService(td, "web"), pcommon.TraceID{15: id}, byte(second(id)), 0, "op", at)
		}
		return otlpdata.FromTraces(td, otlpdata.Meta{})
	}
	store := querytest.Memory(t)
	add := func(b *otlpdata.Batch) {
		t.Helper()
		if err := store.Consume(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	add(spans([]byte{10, 20, 30, 40, 50, 60, 70}, func(id byte) int { return int(id) }))
	b, _ := querytest.NewBackend(t, store)
	h := httpapi.NewMux("", New(b).Routes())
	var got []string
	token := ""
	for page := range 10 {
		w := querytest.Ask(t, h, http.MethodGet, "/api/v3/trace-summaries?query.startTimeMin=2024-05-01T09:00:00Z"+
			"&query.startTimeMax=2024-05-01T11:00:00Z&query.pagination.pageSize=2&query.pagination.pageToken="+token)
		var answer struct {
			Summaries     []struct{ TraceID string }
			NextPageToken string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK {
			t.Fatalf("status %d: %s: %v", w.Code, w.Body, err)
		}
		for _, s := range answer.Summaries {
			got = append(got, strings.TrimLeft(s.TraceID, "0"))
		}
		if token = answer.NextPageToken; token == "" {
			break
		}
		if page == 0 {
			add(spans([]byte{80}, func(byte) int { return 80 }))                 // a new trace
			add(spans([]byte{70, 60}, func(byte) int { return 15 }))             // old spans of traces that were returned
			add(spans([]byte{70}, func(byte) int { return 90 }))                 // a new span of one
			add(spans([]byte{35, 30}, func(id byte) int { return int(id) - 1 })) // a late trace, and an older span of another
		}
	}
	var want []string
	for _, id := range []byte{70, 60, 50, 40, 35, 30, 20, 10} {
		want = append(want, fmt.Sprintf("%x", id))
	}
	if !slices.Equal(got, want) {
		t.Errorf("pages have the traces %v, want %v", got, want)
	}
}
