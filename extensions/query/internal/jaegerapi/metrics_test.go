package jaegerapi

import (
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Series that exceed service.limits.query_memory are rejected as overload.
func TestMetricsReserveMemory(t *testing.T) {
	const path = "/api/metrics/calls?service=web&endTs=1714557780000"
	for memory, status := range map[int64]int{core.SlotMemory + 100: http.StatusTooManyRequests, core.SlotMemory + 64<<10: http.StatusOK} {
		memory = memory*8/7 + 8 // an eighth is kept for lists of names
		budget := pipeline.NewQueryBudget(memory)
		h := api(t, querytest.NewStore(querytest.Shop()), func(o *core.Options) { o.Memory = budget })
		if w := querytest.Ask(t, h, http.MethodGet, path); w.Code != status || budget.Used() != 0 {
			t.Errorf("limit of %d bytes: %d %s, %d bytes still reserved", memory, w.Code, w.Body, budget.Used())
		}
	}
}

// The store query has whole units and begins one window before the first point.
func TestMetricsStoreQuery(t *testing.T) {
	var asked []tracestore.MetricsQuery
	store := querytest.NewStore(querytest.Shop())
	store.OnMetrics = func(q tracestore.MetricsQuery) { asked = append(asked, q) }
	h := api(t, store)
	for _, path := range []string{"calls?service=web",
		"errors?service=a&service=b&groupByOperation=true&spanKind=unspecified&spanKind=consumer" +
			"&endTs=1714557899999&lookback=600000&step=120000&ratePer=180001"} {
		if w := querytest.Ask(t, h, http.MethodGet, "/api/metrics/"+path); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	want := []tracestore.MetricsQuery{
		{Services: []string{"web"}, Kinds: []string{"server"}, From: querytest.Noon.Add(-70 * time.Minute),
			To: querytest.Noon.Add(-time.Minute - 1), Step: time.Minute},
		{Services: []string{"a", "b"}, Kinds: []string{"", "consumer"}, ByOperation: true,
			From: querytest.Start.Add(-8 * time.Minute), To: querytest.Start.Add(4*time.Minute - 1), Step: 2 * time.Minute},
	}
	for i := range asked {
		asked[i].From, asked[i].To = asked[i].From.UTC(), asked[i].To.UTC()
	}
	if !reflect.DeepEqual(asked, want) {
		t.Errorf("store queries %v\nwant %v", asked, want)
	}
}
