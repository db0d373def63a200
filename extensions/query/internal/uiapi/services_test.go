package uiapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
)

// servicesJSON is what tests read of a response.
type servicesJSON struct {
	Data struct {
		Total    seriesJSON
		Services []struct {
			Name string
			seriesJSON
		}
	}
	Errors []struct{ Msg string }
}

type seriesJSON struct {
	Calls, Errors  []int
	Summary, Usual struct{ Calls, Errors int }
}

func askServices(t *testing.T, h http.Handler, from, to time.Time, more string) (a servicesJSON) {
	t.Helper()
	q := url.Values{"start": {strconv.FormatInt(from.UnixNano(), 10)}, "end": {strconv.FormatInt(to.UnixNano(), 10)}}
	w := querytest.Ask(t, h, http.MethodGet, "/api/ui/v1/services?"+q.Encode()+more)
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// With more services than one query of the store can count, sums cover all of them, and those with
// the most errors and calls are listed.
func TestManyServices(t *testing.T) {
	const services = 450
	td := ptrace.NewTraces()
	for i := range services {
		ss := querytest.AddService(td, fmt.Sprintf("service-%03d", i))
		for n := range i%7 + 1 {
			s := querytest.AddSpan(ss, pcommon.TraceID{14: byte(i), 15: byte(n + 1)}, byte(i>>8+1), 0, "op", time.Duration(n)*time.Minute)
			s.SetKind(ptrace.SpanKindServer)
			if i == 3 {
				s.Status().SetCode(ptrace.StatusCodeError)
			}
		}
	}
	h := api(t, querytest.FilledMemory(t, td))
	calls := 0
	for i := range services {
		calls += i%7 + 1
	}
	for _, points := range []int{1, 60, 1000} { // one query counts 100,000, 1666 and 100 services
		a := askServices(t, h, querytest.Start, querytest.Start.Add(24*time.Hour), fmt.Sprintf("&limit=65&points=%d", points))
		if got := a.Data.Total.Summary; got.Calls != calls || got.Errors != 4 {
			t.Errorf("%d points: total %+v, want %d calls", points, got, calls)
		}
		if len(a.Data.Services) != 65 || len(a.Errors) != 1 ||
			a.Errors[0].Msg != "result is incomplete: 385 services with fewer errors or calls are left out (limit is 65)" {
			t.Errorf("%d points: %d services, errors %v", points, len(a.Data.Services), a.Errors)
		}
		for i, s := range a.Data.Services { // 64 services have 7 calls
			if s.Summary.Calls != 7 && s.Name != "service-003" || i > 0 && s.Name <= a.Data.Services[i-1].Name {
				t.Errorf("%d points: service %d is %s with %d calls", points, i, s.Name, s.Summary.Calls)
			}
		}
	}
}

// The minute that has not ended counts, and a service whose requests have stopped is listed. All
// spans of a service count if its last request was long ago.
func TestServicesNow(t *testing.T) {
	td := ptrace.NewTraces()
	since := querytest.Noon.Sub(querytest.Start)
	stopping := querytest.AddService(td, "stopped")
	for i := range byte(30) {
		before := querytest.AddSpan(stopping, pcommon.TraceID{1}, i+3, 0, "op", since-8*time.Minute-time.Duration(i)*time.Minute)
		before.SetKind(ptrace.SpanKindConsumer)
	}
	querytest.AddSpan(querytest.AddService(td, "new"), pcommon.TraceID{2}, 2, 0, "op", since-time.Second)
	batch := querytest.AddService(td, "batch")
	querytest.AddSpan(batch, pcommon.TraceID{3}, 3, 0, "op", since-3*time.Hour).SetKind(ptrace.SpanKindConsumer)
	querytest.AddSpan(batch, pcommon.TraceID{3}, 4, 0, "op", since-time.Minute).SetKind(ptrace.SpanKindClient)
	h := api(t, querytest.FilledMemory(t, td))
	a := askServices(t, h, querytest.Noon.Add(-5*time.Minute), querytest.Noon, "")
	if len(a.Data.Services) != 3 {
		t.Fatalf("services %+v", a.Data.Services)
	}
	calling, fresh, stopped := a.Data.Services[0], a.Data.Services[1], a.Data.Services[2]
	if calling.Name != "batch" || calling.Summary.Calls != 1 {
		t.Errorf("service with calls only: %+v", calling)
	}
	if fresh.Name != "new" || fmt.Sprint(fresh.Calls) != "[0 0 0 0 1]" {
		t.Errorf("new service: %+v", fresh)
	}
	if stopped.Name != "stopped" || stopped.Summary.Calls != 0 || stopped.Usual.Calls != 30 {
		t.Errorf("stopped service: %+v", stopped)
	}
}
