package spangroups

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func routes(b *core.Backend) http.Handler { return httpapi.NewMux("", New(b).Routes()) }

func TestAPI(t *testing.T) {
	g := querytest.Golden{Routes: routes, Store: querytest.ShopStore, Headers: []string{"Content-Type", "X-Content-Type-Options"}}
	g.Run(t, "testdata/*.txt")
}

// groupsJSON is what tests read of a response.
type groupsJSON struct {
	Data struct {
		Spans, Distinct int
		Share           float64
		Groups          struct {
			Values        [][]*string
			Where         []string
			Count, Errors []int
		}
	}
}

func ask(t *testing.T, h http.Handler, params url.Values) (a groupsJSON) {
	t.Helper()
	params.Set("start", fmt.Sprint(querytest.Start.UnixNano()))
	params.Set("end", fmt.Sprint(querytest.Noon.UnixNano()))
	w := querytest.Ask(t, h, http.MethodGet, "/api/ui/v1/groups?"+params.Encode())
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: %d %v %s", params, w.Code, err, w.Body)
	}
	return a
}

// variety returns spans with values of many forms.
func variety() ptrace.Traces {
	td := ptrace.NewTraces()
	ss := querytest.AddService(td, `a "quoted" \ service`)
	values := []string{"", "true", "200", "two\nlines", "ü", "x && y", strings.Repeat("long ", 100) + "a", strings.Repeat("long ", 100) + "b",
		strings.Repeat(".*", 126) + "(", "\xff"}
	for i, value := range values {
		s := querytest.AddSpan(ss, pcommon.TraceID{15: byte(1 + i)}, byte(i+1), 0, "op "+value, time.Second)
		s.SetKind(ptrace.SpanKind(i % 6))
		s.Status().SetCode(ptrace.StatusCode(i % 3))
		s.Attributes().PutStr("text", value)
		s.Attributes().PutStr("a key", value)
		querytest.AddSpan(ss, s.TraceID(), 100+byte(i), byte(i+1), "child", time.Second).Attributes().PutInt("number", int64(i))
	}
	e := ss.Spans().At(0).Events().AppendEmpty()
	e.SetName("exception")
	e.Attributes().PutBool("escaped", true)
	return td
}

// The conditions of each group select exactly its spans.
func TestConditionsOfGroups(t *testing.T) {
	b, _ := querytest.NewBackend(t, querytest.FilledMemory(t, variety()))
	h := routes(b)
	for _, by := range []string{"service,span.text", ".text", `span."a key"`, "name,kind", "status", "kind", ".number", "span.number,.text", "event:name",
		"event.escaped,name", "statusMessage", "span:parentID", "instrumentation:name", "resource.text", "trace.rootName"} {
		params := url.Values{"by": {by}}
		if strings.HasPrefix(by, "trace.") {
			params.Set("of", "traces")
		}
		all := ask(t, h, params)
		if len(all.Data.Groups.Where) < 1 {
			t.Errorf("by %s: no groups", by)
		}
		for i, where := range all.Data.Groups.Where {
			params.Set("q", "{ "+where+" }")
			one := ask(t, h, params)
			if one.Data.Spans != all.Data.Groups.Count[i] {
				t.Errorf("by %s: %d spans with %s, want %d", by, one.Data.Spans, where, all.Data.Groups.Count[i])
			}
		}
	}
}
