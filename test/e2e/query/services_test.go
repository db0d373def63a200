package query_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// serviceSeries is a service in a response of /api/ui/v1/services.
type serviceSeries struct {
	Name          string
	Calls, Errors []int
	P50           []*float64
	Summary       struct{ Calls, Errors int }
}

type servicesAnswer struct {
	Data struct {
		Start    string
		Step     int64
		Points   int
		Total    serviceSeries
		Services []serviceSeries
	}
	Errors []any
}

// page decodes the response of a route of /api/ui/v1.
func page(p *inprocess.Program, path string, answer any) {
	p.T.Helper()
	status, body := harness.Fetch(p.T, p.QueryURL()+"/api/ui/v1/"+path)
	if err := json.Unmarshal(body, answer); err != nil || status != http.StatusOK {
		p.T.Fatalf("%s: %d %v %s", path, status, err, body)
	}
}

// TestServices checks that every store counts the requests of each service, also in the minute that
// has not ended, and after a restart.
func TestServices(t *testing.T) {
	spans := 20_000
	if testing.Short() {
		spans = 2_000
	}
	data := bench.New(7, time.Now().Add(-3*time.Minute))
	testDataset(t, data, spans, func(p *inprocess.Program) { checkServices(p, data, spans) })
}

// requestsOf returns the calls and errors of the data set by service and minute: server and
// consumer spans, or all spans of services without these.
func requestsOf(d *bench.Dataset, spans int) map[string]map[int64][2]int {
	all := [2]map[string]map[int64][2]int{{}, {}} // requests, and all spans
	for i := range d.Traces(spans) {
		for _, s := range d.Trace(i) {
			service, minute := d.Resources()[s.Resource].Service, int64(s.Start)/int64(time.Minute)
			request := s.Kind == otlpdata.KindServer || s.Kind == otlpdata.KindConsumer
			for j, counts := range []bool{request, true} {
				if !counts {
					continue
				}
				if all[j][service] == nil {
					all[j][service] = map[int64][2]int{}
				}
				n := all[j][service][minute]
				n[0]++
				if s.StatusCode == otlpdata.StatusError {
					n[1]++
				}
				all[j][service][minute] = n
			}
		}
	}
	maps.Copy(all[1], all[0])
	return all[1]
}

func checkServices(p *inprocess.Program, data *bench.Dataset, spans int) {
	p.T.Helper()
	want := requestsOf(data, spans)
	var a servicesAnswer
	page(p, "services?points=60&start="+strconv.FormatInt(time.Now().Add(-10*time.Minute).UnixNano(), 10), &a)
	start, err := strconv.ParseInt(a.Data.Start, 10, 64)
	if err != nil || len(a.Errors) > 0 || a.Data.Step != int64(time.Minute) || len(a.Data.Services) != len(want) {
		p.T.Fatalf("start %v, errors %v, step %d, %d services, want %d", err, a.Errors, a.Data.Step, len(a.Data.Services), len(want))
	}
	for _, s := range a.Data.Services {
		calls := 0
		for i := range s.Calls {
			n := want[s.Name][start/a.Data.Step+int64(i)]
			if calls += n[0]; s.Calls[i] != n[0] || s.Errors[i] != n[1] || (s.P50[i] == nil) != (n[0] == 0) {
				p.T.Errorf("%s in minute %d: %d calls, %d errors, want %v", s.Name, i, s.Calls[i], s.Errors[i], n)
			}
		}
		if calls == 0 || s.Summary.Calls != calls {
			p.T.Errorf("%s: summary %+v, want %d calls", s.Name, s.Summary, calls)
		}
	}
}

// A first span of any kind appears as soon as it is acknowledged.
func TestFirstSpan(t *testing.T) {
	p := inprocess.Start(t)
	var a servicesAnswer
	if page(p, "services", &a); len(a.Data.Services) != 0 || a.Data.Services == nil {
		t.Fatalf("before: %+v", a.Data)
	}
	body := strings.Replace(harness.JSONSpan("0102030405060708090a0b0c0d0e0f10", "hello", "first span", time.Now(), time.Second),
		`"kind":2`, `"kind":1`, 1)
	if code, answer := p.PostOTLP("application/json", body); code != http.StatusOK {
		t.Fatal(code, answer)
	}
	if page(p, "services", &a); len(a.Data.Services) != 1 {
		t.Fatalf("after: %+v", a.Data)
	}
	if s := a.Data.Services[0]; s.Name != "hello" || s.Summary.Calls != 1 || a.Data.Total.Summary.Calls != 1 {
		t.Errorf("got %s", fmt.Sprint(a.Data))
	}
}

// ingestAnswer is a response of /api/ui/v1/ingest.
type ingestAnswer struct {
	Data struct {
		Receives                                    bool
		Received, Refused, RefusedRequests, Dropped int
		Receivers                                   []struct {
			Name, Protocol, Endpoint           string
			Received, Refused, RefusedRequests int
			Refusal                            struct{ Reason, At string }
		}
		Oldest, OldestStart, NewestStart string
		StoredBytes, MaxBytes, Retention int64
	}
}

// The counters are what was sent, by receiver and protocol.
func TestIngest(t *testing.T) {
	began := time.Now()
	p := inprocess.Start(t)
	for i := range 3 {
		body := harness.JSONSpan(fmt.Sprintf("0102030405060708090a0b0c0d0e0f%02x", i), "shop", "buy", time.Now(), time.Second)
		if code, answer := p.PostOTLP("application/json", body); code != http.StatusOK {
			t.Fatal(code, answer)
		}
	}
	if code, answer := p.PostOTLP("application/json", "not JSON"); code != http.StatusBadRequest {
		t.Fatal(code, answer)
	}
	var a ingestAnswer
	page(p, "ingest", &a)
	d := a.Data
	if !d.Receives || d.Received != 3 || d.Refused != 0 || d.RefusedRequests != 1 || d.Dropped != 0 || len(d.Receivers) < 3 {
		t.Errorf("%+v", d)
	}
	oldest, err := strconv.ParseInt(d.Oldest, 10, 64)
	if err != nil || oldest < began.UnixNano() || oldest > time.Now().UnixNano() || d.StoredBytes == 0 ||
		d.Retention != int64(72*time.Hour) || d.MaxBytes != 50<<30 {
		t.Errorf("oldest %s (%v), stored bytes %d, limits %d and %d", d.Oldest, err, d.StoredBytes, d.MaxBytes, d.Retention)
	}
	found := false
	for _, r := range d.Receivers {
		if r.Endpoint == "" {
			t.Errorf("%+v has no endpoint", r)
		}
		if r.Name != "otlp" || r.Protocol != "http" {
			continue
		}
		found = true
		if r.Endpoint != p.OTLPHTTP() || r.Received != 3 || r.RefusedRequests != 1 || r.Refusal.Reason != "undecodable" || r.Refusal.At == "" {
			t.Errorf("%+v", r)
		}
	}
	if !found {
		t.Errorf("receivers %+v", d.Receivers)
	}
}

// Errors are grouped by what is wrong, in every store.
func TestErrors(t *testing.T) {
	withEachStore(t, func(t *testing.T, _ string, settings []string) {
		p := inprocess.Start(t, settings...)
		for i := range 5 {
			status := fmt.Sprintf(`"status":{"code":2,"message":"order %d not found"},"startTimeUnixNano"`, i)
			start := time.Now().Add(time.Duration(i) * time.Millisecond)
			body := strings.Replace(harness.JSONSpan(fmt.Sprintf("0102030405060708090a0b0c0d0e0f%02x", i), "shop", "buy", start, time.Second),
				`"startTimeUnixNano"`, status, 1)
			if code, answer := p.PostOTLP("application/json", body); code != http.StatusOK {
				t.Fatal(code, answer)
			}
		}
		var a struct {
			Data struct {
				Spans    int
				Complete bool
				Groups   []struct {
					Service, Operation, Pattern, Message, TraceID, SpanID string
					Count                                                 int
				}
			}
		}
		page(p, fmt.Sprintf("errors?end=%d", time.Now().Add(time.Minute).UnixNano()), &a)
		want := "{5 true [{shop buy order <n> not found order 4 not found 0102030405060708090a0b0c0d0e0f04 " + harness.JSONSpanID + " 5}]}"
		if got := fmt.Sprint(a.Data); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// A new version is a change, in every store.
func TestChanges(t *testing.T) {
	withEachStore(t, func(t *testing.T, _ string, settings []string) {
		p := inprocess.Start(t, settings...)
		now := time.Now()
		for i := range 20 { // one span a minute; the version changes ten minutes ago
			at := now.Add(time.Duration(i-20) * time.Minute)
			version := `{"key":"service.version","value":{"stringValue":"1.` + strconv.Itoa(i/10) + `"}},{"key":"service.name"`
			body := strings.Replace(harness.JSONSpan(fmt.Sprintf("0102030405060708090a0b0c0d0e0f%02x", i), "shop", "buy", at, time.Second),
				`{"key":"service.name"`, version, 1)
			if code, answer := p.PostOTLP("application/json", body); code != http.StatusOK {
				t.Fatal(code, answer)
			}
		}
		var a struct {
			Data struct {
				Changes  []struct{ At, Service, Kind, From, To string }
				Examined int
				Complete bool
			}
		}
		page(p, fmt.Sprintf("changes?start=%d&end=%d", now.Add(-12*time.Minute).UnixNano(), now.UnixNano()), &a)
		if len(a.Data.Changes) != 1 || a.Data.Examined != 20 || !a.Data.Complete {
			t.Fatalf("%+v", a.Data)
		}
		c := a.Data.Changes[0]
		at, err := strconv.ParseInt(c.At, 10, 64)
		if late := time.Unix(0, at).Sub(now.Add(-10 * time.Minute)); err != nil || late.Abs() > time.Minute {
			t.Errorf("at %s, which is %s late", c.At, late)
		}
		if c.Service != "shop" || c.Kind != "version" || c.From != "1.0" || c.To != "1.1" {
			t.Errorf("%+v", c)
		}
	})
}

// A query service without receivers shows what the store of the collector holds.
func TestIngestOfQueryService(t *testing.T) {
	s := startSplit(t)
	if code, answer := s.collector.PostOTLP("application/json",
		harness.JSONSpan("0102030405060708090a0b0c0d0e0f10", "shop", "buy", time.Now(), time.Second)); code != http.StatusOK {
		t.Fatal(code, answer)
	}
	var here, there ingestAnswer
	page(s.query, "ingest", &here)
	page(s.collector, "ingest", &there)
	if here.Data.Receives || here.Data.Received != 0 || len(here.Data.Receivers) != 0 {
		t.Errorf("query service: %+v", here.Data)
	}
	if !there.Data.Receives || there.Data.Received != 1 || there.Data.Oldest == "" {
		t.Errorf("collector: %+v", there.Data)
	}
	if here.Data.Oldest != there.Data.Oldest || here.Data.OldestStart != there.Data.OldestStart || here.Data.NewestStart == "" ||
		here.Data.StoredBytes == 0 || here.Data.Retention != there.Data.Retention {
		t.Errorf("store: %+v, want %+v", here.Data, there.Data)
	}
}
