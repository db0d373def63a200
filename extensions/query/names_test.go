package query

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
)

// manyNames returns spans of services a0 to a9 and b; a0 has operations x0 to x9 and y.
func manyNames() ptrace.Traces {
	td := ptrace.NewTraces()
	add := func(service, operation string) {
		querytest.AddSpan(querytest.AddService(td, service), pcommon.TraceID{15: 1}, 1, 0, operation, 0)
	}
	for i := range 10 {
		add(fmt.Sprint("a", i), "x0")
		add("a0", fmt.Sprint("x", i))
	}
	add("b", "x0")
	add("a0", "y")
	return td
}

// Lists with more than max_names names are cut in all APIs and say so. Each of the names is found
// by prefix.
func TestCutNames(t *testing.T) {
	const cut = "result is incomplete: names after the first 3 are left out"
	seen, logs := observer.New(zap.WarnLevel)
	now := querytest.Noon
	b, reg := querytest.NewBackend(t, querytest.NewStore(manyNames()), func(o *core.Options) {
		o.Limits.Names, o.Logger, o.Now = 3, zap.New(seen), func() time.Time { return now }
	})
	h := routes(b)
	for _, c := range []struct{ path, want string }{
		{"/api/services", `{"data":["a0","a1","a2"],"total":3,"limit":3,"offset":0,"errors":[{"msg":"` + cut},
		{"/api/operations?service=a0", `{"data":[{"name":"x0","spanKind":""},{"name":"x1","spanKind":""},{"name":"x2","spanKind":""}],` +
			`"total":3,"limit":3,"offset":0,"errors":[{"msg":"` + cut},
		{"/api/services/a0/operations", `{"data":["x0","x1","x2"],"total":3,"limit":3,"offset":0,"errors":[{"msg":"` + cut},
		{"/api/services/a1/operations", `{"data":["x0"],"total":1,"limit":0,"offset":0,"errors":null}`},
		{"/api/v3/services", `{"services":["a0","a1","a2"],"warnings":["` + cut},
		{"/api/v3/operations?service=a0", `{"name":"x2","spanKind":"internal"}],"warnings":["` + cut},
		{"/tempo/api/v2/search/tag/rootServiceName/values", `"warnings":["` + cut},
		{"/tempo/api/v2/search/tag/name/values?q={resource.service.name=%22a0%22}", `"warnings":["` + cut},
		{"/api/ui/v1/values?key=service", `{"names":["a0","a1","a2"],"more":true}`},
		{"/api/ui/v1/values?key=service&prefix=a9", `{"names":["a9"],"more":false}`},
		{"/api/ui/v1/values?key=service&prefix=b", `{"names":["b"],"more":false}`},
		{"/api/ui/v1/values?key=service&prefix=a&limit=2", `{"names":["a0","a1"],"more":true}`},
		{"/api/ui/v1/values?key=name&service=a0&prefix=y", `{"names":["y"],"more":false}`},
		{"/api/ui/v1/values?key=name&service=a0&prefix=x&limit=1", `{"names":["x0"],"more":true}`},
		{"/api/ui/v1/values?key=service&text=A1", `{"names":["a1"],"more":`},
		{"/api/ui/v1/values?key=service&text=1", `{"names":["a1"],"more":`},
		{"/api/ui/v1/values?key=kind&text=ER", `{"names":["consumer","internal","producer","server"],"more":false}`},
		{"/api/ui/v1/keys?text=DURATION", `{"names":["duration","trace.duration"],"more":false}`},
	} {
		w := querytest.Ask(t, h, http.MethodGet, c.path)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: %d %s; want %s", c.path, w.Code, w.Body, c.want)
		}
	}
	if n := logs.Len(); n != 1 {
		t.Errorf("%d warnings at one time, want 1: %v", n, logs.All())
	}
	count, err := testutil.GatherAndCount(reg, "tracing_query_cut_lists_total")
	if err != nil || count != 2 {
		t.Errorf("%d counters, %v", count, err)
	}
	now = now.Add(time.Minute)
	querytest.Ask(t, h, http.MethodGet, "/api/services")
	querytest.Ask(t, h, http.MethodGet, "/api/ui/v1/values?key=service&limit=2") // cut by the client
	if n := logs.Len(); n != 2 {
		t.Errorf("%d warnings after a minute, want 2", n)
	}
}
