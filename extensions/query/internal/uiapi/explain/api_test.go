package explain

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
)

// TestAnswers compares answers with files.
func TestAnswers(t *testing.T) {
	g := querytest.Golden{
		Headers: []string{"Content-Type"},
		Routes:  func(b *core.Backend) http.Handler { return httpapi.NewMux("", Routes(b)) },
		Store: func(t *testing.T, name string) core.Store {
			if name == "lacking" {
				return querytest.NewStore(calls())
			}
			return querytest.FilledMemory(t, calls())
		},
	}
	g.Run(t, "testdata/*.txt")
}

// TestSlowestSpans checks the minimum duration of a share of the spans, which a search limits.
func TestSlowestSpans(t *testing.T) {
	td := ptrace.NewTraces()
	shop := querytest.AddService(td, "shop")
	var durations []uint64
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 500 {
		name := "GET /pay"
		duration := uint64(math.Exp(10 + 10*random.Float64()))
		if i%5 == 0 {
			name = "other"
		} else {
			durations = append(durations, duration)
		}
		at := time.Duration(i) * time.Millisecond
		s := querytest.AddSpan(shop, pcommon.TraceID{14: byte(i >> 8), 15: byte(i)}, 1, 0, name, at)
		s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(duration))
	}
	slices.Sort(durations)
	b, _ := querytest.NewBackend(t, querytest.FilledMemory(t, td))
	h := httpapi.NewMux("", Routes(b))
	for _, slowest := range []int{1, 7, 40, 200} {
		var a struct {
			Data struct {
				Selected struct{ Traces, Least uint64 }
			}
		}
		target := fmt.Sprintf("/api/ui/v1/explain?start=%d&end=%d&of=spans&sel_slowest=%v&q=", querytest.Start.UnixNano(),
			querytest.Start.Add(time.Minute).UnixNano(), (float64(slowest)-0.5)/float64(len(durations)))
		w := querytest.Ask(t, h, http.MethodGet, target+url.QueryEscape(`{ name = "GET /pay" }`))
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%d %v %s", w.Code, err, w.Body)
		}
		if want := durations[len(durations)-slowest]; a.Data.Selected.Least != want || a.Data.Selected.Traces != uint64(slowest) {
			t.Errorf("%d slowest spans: %+v, want from %d on", slowest, a.Data.Selected, want)
		}
	}
}

// TestStructure checks that selections of the same traces have the same answer, however they are
// written.
func TestStructure(t *testing.T) {
	b, _ := querytest.NewBackend(t, querytest.FilledMemory(t, calls()))
	h := httpapi.NewMux("", Routes(b))
	ask := func(q, selection, more string) string {
		var a struct {
			Data struct{ Selected, Rest, Time, Shape, Paths json.RawMessage }
		}
		target := fmt.Sprintf("/api/ui/v1/explain?start=%d&end=%d&q=%s&sel_q=%s%s", querytest.Start.UnixNano(),
			querytest.Start.Add(5*time.Minute).UnixNano(), url.QueryEscape(q), url.QueryEscape(selection), more)
		w := querytest.Ask(t, h, http.MethodGet, target)
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%d %v %s", w.Code, err, w.Body)
		}
		return fmt.Sprintf("%s", a.Data)
	}
	const slow = `{ span.try = "2" }`
	for _, more := range []string{"", "&baseline=time", "&baseline=day", "&sel_min=150ms", "&sel_slowest=0.1"} {
		want := ask("", slow, more)
		for _, c := range [][2]string{
			{"", `{ name = "GET /pay" } > ` + slow},
			{"", `{ kind = server } | count() > 2`},
			{`{ name = "GET /pay" } >> { kind = client }`, slow},
			{`{ kind = server } << { kind = client }`, `{ kind = client } | count() = 3`},
			{`{ kind = client } | count() > 0`, slow},
		} {
			if got := ask(c[0], c[1], more); got != want {
				t.Errorf("search %q, selection %q%s:\n got %s\nwant %s", c[0], c[1], more, got, want)
			}
		}
	}
	want := ask("", "", "&sel_slowest=0.1")
	if got := ask(`{ name = "GET /pay" } &>> { kind = client }`, "", "&sel_slowest=0.1"); got != want {
		t.Errorf("slowest traces:\n got %s\nwant %s", got, want)
	}
}

// calls returns 80 traces of a service that calls another one, from the Start of package querytest
// on, one each second. Of each eight traces the last three are slow, because they retry a call in
// another region; and 80 traces a day earlier, without slow ones.
func calls() ptrace.Traces {
	td := ptrace.NewTraces()
	web, bank := querytest.AddService(td, "web"), querytest.AddService(td, "bank")
	td.ResourceSpans().At(1).Resource().Attributes().PutStr("cloud.region", "north")
	south := querytest.AddService(td, "bank")
	td.ResourceSpans().At(2).Resource().Attributes().PutStr("cloud.region", "south")
	td.ResourceSpans().At(2).Resource().Attributes().PutStr("cloud.zone", "south-1")
	for i := range 160 {
		slow, at := i < 80 && i%8 >= 5, time.Duration(i%80)*time.Second-time.Duration(i/80)*24*time.Hour
		trace := pcommon.TraceID{14: 1, 15: byte(i)}
		root := querytest.AddSpan(web, trace, 1, 0, "GET /pay", at)
		root.Attributes().PutInt("amount", int64(i%10))
		attempts := 1
		if slow {
			attempts = 3
		}
		for n := range attempts {
			begin := at + time.Duration(10+100*n)*time.Millisecond
			call := querytest.AddSpan(web, trace, byte(2+2*n), 1, "POST /charge", begin)
			call.SetKind(ptrace.SpanKindClient)
			call.Attributes().PutStr("try", fmt.Sprint(n))
			to := bank
			if slow {
				to = south
			}
			querytest.AddSpan(to, trace, byte(3+2*n), byte(2+2*n), "POST /charge", begin+time.Millisecond).SetKind(ptrace.SpanKindServer)
			root.SetEndTimestamp(call.EndTimestamp() + 5e6)
		}
	}
	return td
}
