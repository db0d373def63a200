package jaegerapi

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/internal/traceql"
)

func TestSearchLanguage(t *testing.T) {
	h := api(t, querytest.NewStore(querytest.Many(4, func(i int, rs ptrace.ResourceSpans, s ptrace.Span) {
		s.Attributes().PutInt("http.response.status_code", int64(100*i+100)) // 200 to 500
		s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(time.Duration(i)*time.Second))
		if i == 2 {
			s.Status().SetCode(ptrace.StatusCodeError)
		}
		child := querytest.AddSpan(rs.ScopeSpans().At(0), s.TraceID(), byte(10+i), byte(i), fmt.Sprint("child", i),
			time.Minute+time.Duration(i))
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
	f(`{ .cached }`, "&operation=op", "") // must hold on the selected span
	f(`{ name = "op" }`, "&minDuration=2s&maxDuration=3s&tag=http.response.status_code:300", "2")
	f(`{ error } >> { .cached }`, "", "2")
	f(`{ error } >> {}`, "&operation=op", "")
	f(`{ .cached } && { error }`, "", "2")
	f(`{ .cached } > {} || { http.response.status_code < 300 }`, "", "1")
	f(`{ trace.rootName = "op" && name =~ "child(1|4)" }`, "&limit=1", "4")
	f(`{ name = "op" }`,
		fmt.Sprintf("&start=%d&end=%d", querytest.Start.Add(2*time.Millisecond).UnixMicro(),
			querytest.Start.Add(3*time.Millisecond).UnixMicro()), "3 2")
	f(`{ error }`, "&traceID=1", "1") // ids override all other conditions
}

// FuzzLanguage checks that a search is answered if it is valid and rejected otherwise.
func FuzzLanguage(f *testing.F) {
	for _, q := range []string{
		`{ error } >> { kind = client }`, `{ trace.duration > 1s && .db != "" } || {} > { root }`, "{ name =~ `S.*T` } && {", "{}",
	} {
		f.Add(q)
	}
	h := api(f, querytest.NewStore(querytest.Shop()))
	f.Fuzz(func(t *testing.T, q string) {
		w := querytest.Ask(t, h, http.MethodGet, "/api/traces?q="+url.QueryEscape(q))
		_, err := traceql.Parse(q)
		if q == "" {
			return
		}
		if want := map[bool]int{true: http.StatusOK, false: http.StatusBadRequest}[err == nil]; w.Code != want {
			t.Fatalf("%q: %d %s", q, w.Code, w.Body)
		}
	})
}
