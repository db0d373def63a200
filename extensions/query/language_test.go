package query

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Hostile searches are rejected with a short message, or answered within the usual limits.
func TestHostileSearches(t *testing.T) {
	store := querytest.NewStore(querytest.Shop())
	var asked tracestore.Query
	store.OnFind = func(q tracestore.Query) { asked = q }
	h, _ := api(t, store)
	srv := httptest.NewServer(h)
	defer srv.Close()
	const v3 = "/api/v3/traces?query.startTimeMin=2024-05-01T00:00:00Z&query.startTimeMax=2024-05-02T00:00:00Z&query.q="
	refused := func(name, q, want string) {
		t.Helper()
		for _, path := range []string{"/api/traces?q=", v3, strings.Replace(v3, "traces", "trace-summaries", 1)} {
			w := querytest.Ask(t, h, http.MethodGet, path+url.QueryEscape(q))
			if w.Code != http.StatusBadRequest || w.Body.Len() > 1000 || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %d %.1000s", name, w.Code, w.Body)
			}
		}
	}
	refused("1 MB", "{"+strings.Repeat(" ", 1<<20)+"}", "the maximum is 16384")
	refused("depth", strings.Repeat("(", 8000)+"{}"+strings.Repeat(")", 8000), "64 deep")
	refused("depth", "{"+strings.Repeat("(", 10_000), "64 deep")
	refused("pattern", `{ name =~ "((a{900}){900}){900}" }`, "invalid repeat count")
	refused("pattern", `{ name =~ "`+strings.Repeat("(x+x+)+", 100)+`y{1000}{2}" }`, "invalid")
	refused("patterns", "{"+strings.Repeat("name=~`[a-z]{1000}`||", 200)+"error}", "1024 steps")
	refused("conditions", strings.Repeat("{}>>", 1000)+"{}", "256 conditions")
	refused("other language", `service="web" AND duration>1s`, "expected {")
	refused("not UTF-8", "{\xff}", "invalid UTF-8")

	get := func(query string) (status int) {
		t.Helper()
		resp, err := http.Get(srv.URL + "/api/traces?" + query)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	if status := get("q=" + url.QueryEscape("{"+strings.Repeat("(", 1<<20))); status < 400 || status >= 500 {
		t.Errorf("URL of 1 MB: %d", status)
	}
	for _, limit := range []string{"1000000000", "0", "-5"} {
		if status := get("q=%7B%7D&limit=" + limit); status != http.StatusOK || asked.Limit != 1000 || asked.Budget.Spans != 1000 ||
			asked.From != querytest.Noon.Add(-core.DefaultSearchLookback) {
			t.Errorf("limit %s: status %d, store query %+v", limit, status, asked)
		}
	}
	if status := get("q=%7B%7D&limit=10000000000"); status != http.StatusBadRequest {
		t.Errorf("limit of more than 32 bits: %d", status)
	}
}
