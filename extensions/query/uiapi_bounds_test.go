package query

import (
	"context"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Who asks for headers alone does not wait for an answer without an end, and does not take the place of somebody who watches.
func TestHeadOfStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore(shop())
		s.hang = true
		for target, want := range map[string]string{"/api/ui/v1/tail": eventStream, inShop: ndjson} {
			store := Store(s)
			if want == eventStream {
				store = filledMemory(t, shop())
			}
			h, _ := api(t, store)
			began := time.Now()
			w := ask(t, h, http.MethodHead, target)
			if took := time.Since(began); w.Code != http.StatusOK || w.Header().Get("Content-Type") != want || took > 0 {
				t.Errorf("HEAD %s: %d %v after %s", target, w.Code, w.Header(), took)
			}
		}
	})
}

// Names and values that nobody could choose from are not listed, and do not fill answers.
func TestLongTextsAreNotListed(t *testing.T) {
	td := ptrace.NewTraces()
	ss := service(td, "web")
	for i, text := range []string{"short", strings.Repeat("x", maxListed), strings.Repeat("y", maxListed+1)} {
		s := put(ss, pcommon.TraceID{15: 1}, byte(i+1), 0, text, 0)
		s.Attributes().PutStr("key", text)
		s.Attributes().PutStr(text, "value")
	}
	h, _ := api(t, filledMemory(t, td))
	for _, target := range []string{
		"/api/ui/v1/keys?prefix=span.", "/api/ui/v1/values?key=span.key", "/api/ui/v1/values?key=name&service=web",
		"/tempo/api/search/tags", "/tempo/api/v2/search/tag/span.key/values", "/tempo/api/v2/search/tag/name/values",
	} {
		w := ask(t, h, http.MethodGet, target)
		if got := w.Body.String(); w.Code != http.StatusOK || strings.Count(got, "x") < maxListed || strings.Contains(got, "yy") {
			t.Errorf("%s: %d %s", target, w.Code, got)
		}
	}
	if w := ask(t, h, http.MethodGet, "/api/ui/v1/values?key=span.key&limit=2"); !strings.Contains(w.Body.String(), `"more":true`) {
		t.Errorf("there is more than what the store listed: %s", w.Body)
	}
}

// What answers take, and what it takes to make them, is a part of max_answer_memory.
func TestAnswersNeedMemory(t *testing.T) {
	memory := pipeline.NewBudget(100 << 20)
	h, _ := api(t, filledMemory(t, shop()), func(h *handler) { h.memory = memory })
	others, err := memory.Reserve(99 << 20)
	if err != nil {
		t.Fatal(err)
	}
	targets := []string{
		"/api/ui/v1/facets", "/api/ui/v1/compare?sel_min=1ms", "/api/ui/v1/heatmap?columns=2000",
		"/tempo/api/v2/search/tags", "/tempo/api/v2/search/tag/statusMessage/values",
	}
	for _, target := range targets {
		w := ask(t, h, http.MethodGet, target)
		if w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "max_answer_memory") {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
	others.Release()
	for _, target := range targets {
		if w := ask(t, h, http.MethodGet, target); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
}

// longNames is a store whose outlines have names that are too long to be held.
type longNames struct{ *fakeStore }

func (longNames) Outline(
	_ context.Context, _ string, _ otlpdata.TraceID, _ int, hold func(int, int) error, take func([]tracestore.SummarySpan) error,
) error {
	if err := hold(1, 1<<30); err != nil {
		return err
	}
	return take(make([]tracestore.SummarySpan, 1))
}

func TestOutlineNeedsMemory(t *testing.T) {
	h, _ := api(t, longNames{newFakeStore(shop())})
	if w := ask(t, h, http.MethodGet, "/api/ui/v1/outline/1"); w.Code != http.StatusTooManyRequests {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// All time that there is has steps, too.
func TestLongestHeatmap(t *testing.T) {
	for _, columns := range []int{1, 2, 120, 2000} {
		if step := chooseStep(math.MaxInt64, columns); step <= 0 || math.MaxInt64/step > time.Duration(columns) {
			t.Errorf("%d columns: step %s", columns, step)
		}
	}
	h, _ := api(t, filledMemory(t, shop()))
	if w := ask(t, h, http.MethodGet, "/api/ui/v1/heatmap?start=0&end=9223372036854775807"); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
