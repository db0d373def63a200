package query

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func TestSearchLanguage(t *testing.T) {
	h, _ := api(t, newFakeStore(many(4, func(i int, rs ptrace.ResourceSpans, s ptrace.Span) {
		s.Attributes().PutInt("http.response.status_code", int64(100*i+100)) // 200 to 500
		s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(time.Duration(i)*time.Second))
		if i == 2 {
			s.Status().SetCode(ptrace.StatusCodeError)
		}
		child := put(rs.ScopeSpans().At(0), s.TraceID(), byte(10+i), byte(i), fmt.Sprint("child", i), time.Minute+time.Duration(i))
		child.Attributes().PutBool("cached", i%2 == 0)
	})))
	f := func(q, narrowed, want string) {
		t.Helper()
		if got := search200(t, h, "q="+url.QueryEscape(q)+narrowed).ids(); got != want {
			t.Errorf("%s%s: found %q, want %q", q, narrowed, got, want)
		}
	}
	f(`{ service.name = "svc" && duration > 1s && (http.response.status_code >= 500 || error) }`, "", "4 2")
	f(`{ service.name = "other" }`, "", "")
	f(`{}`, "&operation=child3", "3")
	f(`{ .cached }`, "&service=svc", "4 2")
	f(`{ .cached }`, "&operation=op", "") // on the span that is chosen
	f(`{ name = "op" }`, "&minDuration=2s&maxDuration=3s&tag=http.response.status_code:300", "2")
	f(`{ error } >> { .cached }`, "", "2")
	f(`{ error } >> {}`, "&operation=op", "")
	f(`{ .cached } && { error }`, "", "2")
	f(`{ .cached } > {} || { http.response.status_code < 300 }`, "", "1")
	f(`{ trace.rootName = "op" && name =~ "child(1|4)" }`, "&limit=1", "4")
	f(`{ name = "op" }`,
		fmt.Sprintf("&start=%d&end=%d", start.Add(2*time.Millisecond).UnixMicro(), start.Add(3*time.Millisecond).UnixMicro()), "3 2")
	f(`{ error }`, "&traceID=1", "1") // ids leave everything else aside
}

// Hostile searches are refused in few words, or answered within the bounds of all answers.
func TestHostileSearches(t *testing.T) {
	store := newFakeStore(shop())
	var asked tracestore.Query
	store.asked = func(q tracestore.Query) { asked = q }
	h, _ := api(t, store)
	srv := httptest.NewServer(h)
	defer srv.Close()
	const v3 = "/api/v3/traces?query.startTimeMin=2024-05-01T00:00:00Z&query.startTimeMax=2024-05-02T00:00:00Z&query.q="
	refused := func(name, q, want string) {
		t.Helper()
		for _, path := range []string{"/api/traces?q=", v3, strings.Replace(v3, "traces", "trace-summaries", 1)} {
			w := ask(t, h, http.MethodGet, path+url.QueryEscape(q))
			if w.Code != http.StatusBadRequest || w.Body.Len() > 1000 || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %d %.1000s", name, w.Code, w.Body)
			}
		}
	}
	refused("1 MB", "{"+strings.Repeat(" ", 1<<20)+"}", "at most 16384")
	refused("depth", strings.Repeat("(", 8000)+"{}"+strings.Repeat(")", 8000), "64 deep")
	refused("depth", "{"+strings.Repeat("(", 10_000), "64 deep")
	refused("pattern", `{ name =~ "((a{900}){900}){900}" }`, "invalid repeat count")
	refused("pattern", `{ name =~ "`+strings.Repeat("(x+x+)+", 100)+`y{1000}{2}" }`, "invalid")
	refused("patterns", "{"+strings.Repeat("name=~`[a-z]{1000}`||", 200)+"error}", "1024 steps")
	refused("conditions", strings.Repeat("{}>>", 1000)+"{}", "256 conditions")
	refused("other language", `service="web" AND duration>1s`, "expected {")
	refused("not UTF-8", "{\xff}", "not UTF-8")

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
		t.Errorf("a URL of 1 MB: %d", status)
	}
	for _, limit := range []string{"1000000000", "0", "-5"} {
		if status := get("q=%7B%7D&limit=" + limit); status != http.StatusOK || asked.Limit != 1000 || asked.Budget.Spans != 1000 ||
			asked.From != noon.Add(-defaultLookback) {
			t.Errorf("limit %s: status %d, asked for %+v", limit, status, asked)
		}
	}
	if status := get("q=%7B%7D&limit=10000000000"); status != http.StatusBadRequest {
		t.Errorf("a limit of more than 32 bits: %d", status)
	}
}

// FuzzLanguage checks that no search makes the server fail.
func FuzzLanguage(f *testing.F) {
	for _, q := range []string{
		`{ error } >> { kind = client }`, `{ trace.duration > 1s && .db != "" } || {} > { root }`, "{ name =~ `S.*T` } && {", "{}",
	} {
		f.Add(q)
	}
	h, _ := api(f, newFakeStore(shop()))
	f.Fuzz(func(t *testing.T, q string) {
		w := ask(t, h, http.MethodGet, "/api/traces?q="+url.QueryEscape(q))
		_, err := traceql.Parse(q)
		if q == "" {
			return
		}
		if want := map[bool]int{true: http.StatusOK, false: http.StatusBadRequest}[err == nil]; w.Code != want {
			t.Fatalf("%q: %d %s", q, w.Code, w.Body)
		}
	})
}
