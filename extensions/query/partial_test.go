package query

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
)

// TestPartialAnswers checks that all responses that count or list what several stores have say
// which store is missing.
func TestPartialAnswers(t *testing.T) {
	const day = "start=1714521600000000000&end=1714608000000000000"
	works := querytest.FilledMemory(t, querytest.Shop())
	h, _ := api(t, querytest.Partial(works))
	complete, _ := api(t, works)
	for _, path := range []string{
		"/api/ui/v1/search?" + day,
		"/api/traces?service=shop", "/api/traces/1", "/api/services", "/api/dependencies?endTs=1714608000000&lookback=86400000",
		"/api/dependencies?endTs=1714608000000&lookback=86400000&details=true",
		"/api/metrics/calls?service=shop&endTs=1714608000000&lookback=86400000",
		"/api/ui/v1/heatmap?of=spans&" + day, "/api/ui/v1/heatmap?of=traces&" + day, "/api/ui/v1/facets?" + day,
		"/api/ui/v1/compare?sel_q=%7Berror%7D&" + day, "/api/ui/v1/groups?by=service&" + day, "/api/ui/v1/groups?by=service&of=traces&" + day,
		"/api/ui/v1/errors?" + day, "/api/ui/v1/services?" + day, "/api/ui/v1/service?service=shop&" + day, "/api/ui/v1/map?" + day,
		"/api/ui/v1/map?service=shop&" + day, "/api/ui/v1/incidents?" + day,
		"/api/ui/v1/changes?" + day, "/api/ui/v1/explain?sel_min=1ms&" + day, "/api/ui/v1/tree?" + day, "/api/ui/v1/critical?ids=1",
		"/api/ui/v1/baseline/1", "/api/ui/v1/typical/1", "/api/ui/v1/ingest", "/api/ui/v1/keys", "/api/ui/v1/values?key=service",
		"/api/ui/v1/outline/1",
		"/tempo/api/search?q=%7B%7D&start=1714521600&end=1714608000", "/tempo/api/v2/search/tags", "/tempo/api/v2/search/tag/name/values",
		"/tempo/api/v2/search/tag/name/values?q=%7Bstatus=error%7D&start=1714521600&end=1714608000",
	} {
		w := querytest.Ask(t, h, http.MethodGet, path)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), querytest.PartialReason) &&
			!strings.Contains(w.Header().Get("Tracing-Warning"), querytest.PartialReason) {
			t.Errorf("%s: %d %.600s", path, w.Code, w.Body)
		}
		if n := strings.Count(w.Body.String(), querytest.PartialReason); n > 1 {
			t.Errorf("%s: the reason is repeated: %.600s", path, w.Body)
		}
		if w := querytest.Ask(t, complete, http.MethodGet, path); w.Code != http.StatusOK {
			t.Errorf("%s of one store: %d %.600s", path, w.Code, w.Body)
		}
	}
}

// TestArchivePartly checks that a trace that may be incomplete is archived with an error
// that says so, and that an unreadable trace is not.
func TestArchivePartly(t *testing.T) {
	archive := querytest.NewArchive(t, "empty")
	h, _ := api(t, querytest.Partial(querytest.FilledMemory(t, querytest.Shop())), func(o *core.Options) { o.Archive = archive })
	for path, want := range map[string]string{
		"/api/archive/1":  "500 trace was archived, but spans may be missing: ",
		"/api/archive/77": "404 " + core.ErrTraceDamaged.Error() + ": ",
	} {
		w := querytest.Ask(t, h, http.MethodPost, path)
		status, text, _ := strings.Cut(want, " ")
		if strconv.Itoa(w.Code) != status || !strings.Contains(w.Body.String(), text+querytest.PartialReason) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if len(archive.Consumed) == 0 {
		t.Error("nothing was archived")
	}
}
