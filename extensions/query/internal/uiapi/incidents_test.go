package uiapi

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
)

// plantedSystem is traces of users until noon: web calls checkout, which calls payment and stock,
// or catalog, which calls search. trouble changes what the innermost service does some time before
// noon.
type plantedSystem struct {
	name    string
	perHour int
	trouble func(before time.Duration, innermost string, random *rand.Rand) innerSpan
	// What the answer must say: source, kind, time, version, reached services and errors.
	want []string
}

// innerSpan is what the innermost service does.
type innerSpan struct {
	failed, absent bool
	mobile         bool // the trace begins in mobile, not in web
	slower         float64
	besides        float64 // how much slower another callee of checkout is, which does not fail
	version        string
}

const plantedHours = 14

// plantedSystems returns systems with one kind of incident each.
func plantedSystems() []plantedSystem {
	const m = time.Minute
	failing := func(in string, share float64, when func(before time.Duration) bool) func(time.Duration, string, *rand.Rand) innerSpan {
		return func(before time.Duration, service string, random *rand.Rand) innerSpan {
			return innerSpan{failed: service == in && when(before) && random.Float64() < share}
		}
	}
	last := func(d time.Duration) func(time.Duration) bool {
		return func(before time.Duration) bool { return before <= d }
	}
	const payment = "payment Timeout, then checkout, then web"
	const search = "search Timeout, then catalog, then web"
	return []plantedSystem{
		{"a version", 300, func(before time.Duration, service string, random *rand.Rand) innerSpan {
			if service == "payment" && before <= 30*m && random.IntN(2) == 0 {
				return innerSpan{failed: random.IntN(10) < 7, version: "2.0"}
			}
			return innerSpan{}
		}, []string{"payment errors since 30m0s, version 1.0 to 2.0, reached checkout, web: " + payment}},
		{"a good version before", 300, func(before time.Duration, service string, random *rand.Rand) innerSpan {
			s := innerSpan{failed: service == "payment" && before <= 30*m && random.IntN(3) == 0}
			if service == "payment" && before <= 3*time.Hour {
				s.version = "2.0"
			}
			return s
		}, []string{"payment errors since 30m0s, reached checkout, web: " + payment}},
		{"slow growth", 300, func(before time.Duration, service string, random *rand.Rand) innerSpan {
			growth := 1 - float64(before)/float64(3*time.Hour)
			return innerSpan{failed: service == "search" && random.Float64() < 0.4*growth}
		}, []string{"search errors growing, reached catalog, web: " + search}},
		{"recurring spikes", 300, failing("payment", 0.5, func(before time.Duration) bool { return (before+50*m)%time.Hour >= 50*m }),
			[]string{"payment errors since 10m0s, reached checkout, web: " + payment}},
		{"two at the same time", 300, func(before time.Duration, service string, random *rand.Rand) innerSpan {
			since := map[string]time.Duration{"payment": 40 * m, "search": 25 * m}[service]
			return innerSpan{failed: before <= since && random.Float64() < 0.4}
		}, []string{
			"payment errors since 40m0s, reached checkout, web: " + payment, "search errors since 25m0s, reached catalog, web: " + search,
		}},
		{"two of different users", 300, func(before time.Duration, service string, random *rand.Rand) innerSpan {
			since := map[string]time.Duration{"payment": 40 * m, "search": 25 * m}[service]
			return innerSpan{failed: before <= since && random.Float64() < 0.4, mobile: service == "search"}
		}, []string{
			"payment errors since 40m0s, reached checkout, web: " + payment,
			"search errors since 25m0s, reached catalog, mobile: search Timeout, then catalog, then mobile",
		}},
		{"few requests", 40, failing("search", 0.6, last(time.Hour)),
			[]string{"search errors since 1h0m0s, reached catalog, web: " + search}},
		{"a new service", 300, func(before time.Duration, service string, random *rand.Rand) innerSpan {
			return innerSpan{absent: service == "search" && before > 20*m, failed: service == "search" && random.IntN(2) == 0}
		}, []string{"search errors, reached catalog, web: " + search}},
		{"slow", 300, func(before time.Duration, service string, _ *rand.Rand) innerSpan {
			if service == "search" && before <= 25*m {
				return innerSpan{slower: 8}
			}
			return innerSpan{}
		}, []string{"search slow since 25m0s, reached catalog, web"}},
		{"slow callees of the same callers", 300, func(before time.Duration, service string, random *rand.Rand) innerSpan {
			s := innerSpan{}
			if service == "payment" && before <= 25*m && random.IntN(2) == 0 {
				s = innerSpan{failed: random.IntN(10) < 7, besides: 8}
			}
			return s
		}, []string{"payment errors since 25m0s, reached checkout, web, stock: " + payment}},
		{"ended", 300, failing("payment", 0.4, func(before time.Duration) bool { return before <= 50*m && before > 15*m }),
			[]string{"payment errors from 50m0s to 15m0s, reached checkout, web: " + payment}},
		{"none", 300, failing("payment", 0.004, last(plantedHours*time.Hour)), nil},
	}
}

// traces returns the spans of a system, and counts the root requests to a service in a time range.
func (p *plantedSystem) traces() (td ptrace.Traces, roots func(service string, from, to time.Time) (calls, errors int)) {
	td = ptrace.NewTraces()
	random := rand.New(rand.NewPCG(3, 5))
	spans := make(map[string]ptrace.ScopeSpans)
	add := func(id, parent byte, trace pcommon.TraceID, service, version string, at time.Time, took time.Duration, failed bool, title string) {
		key := service + version
		if _, ok := spans[key]; !ok {
			spans[key] = querytest.AddService(td, service)
			td.ResourceSpans().At(td.ResourceSpans().Len()-1).Resource().Attributes().PutStr("service.version", version)
		}
		s := querytest.AddSpan(spans[key], trace, id, parent, "handle "+service, at.Sub(querytest.Start))
		s.SetKind(ptrace.SpanKindServer)
		s.SetEndTimestamp(pcommon.NewTimestampFromTime(at.Add(took)))
		if failed {
			s.Status().SetCode(ptrace.StatusCodeError)
			if title != "" {
				s.Attributes().PutStr("error.type", title)
			}
		}
	}
	type root struct {
		service string
		at      time.Time
		failed  bool
	}
	var all []root
	gap := time.Hour / time.Duration(p.perHour)
	for i := plantedHours * p.perHour; i >= 1; i-- {
		before := time.Duration(i)*gap - gap/2
		at := querytest.Noon.Add(-before)
		middle, inner := "checkout", "payment"
		if i%2 == 0 {
			middle, inner = "catalog", "search"
		}
		s := p.trouble(before, inner, random)
		if s.version == "" {
			s.version = "1.0"
		}
		took := time.Duration((20 + 20*random.Float64()) * max(1, s.slower) * float64(time.Millisecond))
		trace := pcommon.TraceID{12: 1, 13: byte(i >> 16), 14: byte(i >> 8), 15: byte(i)}
		failed := s.failed && !s.absent
		users := "web"
		if s.mobile {
			users = "mobile"
		}
		add(1, 0, trace, users, "1.0", at, took+20*time.Millisecond, failed, "")
		add(2, 1, trace, middle, "1.0", at, took+10*time.Millisecond, failed, "")
		if !s.absent {
			add(3, 2, trace, inner, s.version, at, took, failed, "Timeout")
		}
		if middle == "checkout" {
			add(4, 2, trace, "stock", "1.0", at, time.Duration(max(1, s.besides)*float64(5*time.Millisecond)), false, "")
		}
		all = append(all, root{users, at, failed})
	}
	return td, func(service string, from, to time.Time) (calls, errors int) {
		for _, r := range all {
			if r.service == service && !r.at.Before(from) && r.at.Before(to) {
				calls++
				if r.failed {
					errors++
				}
			}
		}
		return calls, errors
	}
}

type cardJSON struct {
	Source struct {
		Name string
		incidentJSON
		Calls, Errors int
		Usual         *struct{ Calls, Errors int }
	}
	Reached []struct{ Name string }
	Version *struct {
		From, To   string
		Of, Others struct{ Calls, Errors int }
	}
	Roots *struct {
		Services      []string
		Operation     string
		Calls, Errors int
		P95           *int64
		Usual         *struct {
			Calls, Errors int
			P95           *int64
		}
	}
	Errors []struct {
		Service, Title, Operation string
		Follows                   bool
	}
	TraceID, SpanID string
}

// describe says what a card says; want is for describe of incidents.
func (c *cardJSON) describe(t *testing.T, want string) string {
	t.Helper()
	text := c.Source.Name + " " + c.Source.incidentJSON.describe(t, strings.ReplaceAll(want, ",", ""))
	if strings.Contains(want, "growing") && c.Source.Start != nil {
		if since := querytest.Noon.Sub(nanosTime(t, *c.Source.Start)); since > time.Hour && since < 3*time.Hour && c.Source.End == nil {
			text = c.Source.Name + " " + c.Source.Kind + " growing"
		}
	}
	if v := c.Version; v != nil {
		text += fmt.Sprintf(", version %s to %s", v.From, v.To)
	}
	var names, titles []string
	for _, s := range c.Reached {
		names = append(names, s.Name)
	}
	for _, e := range c.Errors {
		one := strings.TrimSpace(e.Service + " " + e.Title)
		if e.Follows {
			one = "then " + one
		}
		titles = append(titles, one)
	}
	text += ", reached " + strings.Join(names, ", ")
	if len(titles) > 0 {
		text += ": " + strings.Join(titles, ", ")
	}
	return text
}

func nanosTime(t *testing.T, text string) time.Time {
	t.Helper()
	var ns int64
	if _, err := fmt.Sscan(text, &ns); err != nil {
		t.Fatal(err)
	}
	return time.Unix(0, ns)
}

// Each incident is named once, with its source, the services that it reached, and the numbers of
// its own time, also as users see them.
func TestIncidents(t *testing.T) {
	for _, p := range plantedSystems() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			td, roots := p.traces()
			h := api(t, querytest.FilledMemory(t, td), func(o *core.Options) { o.Limits.Aggregated, o.Limits.Scanned = 1e6, 1e6 })
			w := querytest.Ask(t, h, http.MethodGet, fmt.Sprintf("/api/ui/v1/incidents?start=%d&end=%d",
				querytest.Noon.Add(-time.Hour).UnixNano(), querytest.Noon.UnixNano()))
			var answer struct {
				Data struct{ Incidents []cardJSON }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK {
				t.Fatalf("%d %v: %.300s", w.Code, err, w.Body)
			}
			var got []string
			for i := range answer.Data.Incidents {
				c := &answer.Data.Incidents[i]
				want := ""
				if i < len(p.want) {
					want = p.want[i]
				}
				got = append(got, c.describe(t, want))
				from, to := querytest.Noon.Add(-time.Hour), querytest.Noon
				if c.Source.Start != nil {
					from = nanosTime(t, *c.Source.Start)
				}
				if c.Source.End != nil {
					to = nanosTime(t, *c.Source.End)
				}
				if c.Roots == nil || len(c.Roots.Services) != 1 {
					t.Fatalf("root requests of %s: %+v", c.Source.Name, c.Roots)
				}
				service := c.Roots.Services[0]
				calls, errors := roots(service, from, to)
				if c.Roots.Operation != "handle "+service || c.Roots.Calls != calls || c.Roots.Errors != errors {
					t.Errorf("root requests of %s: %+v, want %d of %d failed", c.Source.Name, c.Roots, errors, calls)
				} else if u := c.Roots.Usual; u == nil && c.Source.Usual != nil || u != nil && (u.Calls == 0 || u.Errors > u.Calls/50) {
					t.Errorf("usual root requests of %s: %+v", c.Source.Name, u)
				}
				if v := c.Version; v != nil && (v.Of.Errors*2 < v.Of.Calls || v.Others.Errors > 0 || v.Of.Calls+v.Others.Calls != c.Source.Calls) {
					t.Errorf("version %+v of %+v", v, c.Source)
				}
				if u := c.Source.Usual; u != nil && 4*u.Errors >= u.Calls {
					t.Errorf("%s: %+v is not usual", c.Source.Name, u)
				}
				if c.TraceID == "" || c.SpanID == "" {
					t.Errorf("%s has no example", c.Source.Name)
				}
			}
			if !slices.Equal(got, p.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(p.want, "\n"))
			}
		})
	}
}
