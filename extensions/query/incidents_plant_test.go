package query

import (
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/internal/demo"
)

// plantedSystem is requests of users until querytest.Noon, in which something goes wrong: web, or
// mobile, calls checkout, which calls payment and stock, or catalog, which calls search.
type plantedSystem struct {
	kind    string
	hours   int // of data; 0: plantedHours
	perHour int // requests of users; 0: 300
	trouble func(*plantedRequest)
	// nightly is errors at the same time of each day, which Errors does not know: it compares with
	// the time before.
	nightly bool
	truth   []plantedIncident // those that go on first
	traces  func(*testing.T) ptrace.Traces
}

// plantedIncident is what the pages must say. Times are before noon.
type plantedIncident struct {
	source  string
	slow    bool
	from    time.Duration // 0: not to be known
	to      time.Duration // 0: it goes on
	growing bool          // from is when it begins to grow
	share   float64       // of the requests of the source that fail, 0 if slow
	reached string
	version string // that appears
	inputs  string // what Explain must name in its first line, any of several; "" if there is none
	users   string // service in which the traces begin; "" is web
}

// plantedRequest is a request of a user: what it brings along, and what becomes of it.
type plantedRequest struct {
	random           *rand.Rand
	before           time.Duration // noon
	inner            string        // payment or search
	tenant, provider string
	host             int // of the inner service

	failed, absent, dropped bool
	users                   string
	slower, besides         float64 // of the inner service, and of stock
	version                 string  // of the inner service
}

const plantedHosts, plantedHours = 3, 10

// in reports whether the request is for a service, in a time before noon.
func (r *plantedRequest) in(service string, from, to time.Duration) bool {
	return r.inner == service && r.before <= from && r.before > to
}

func (r *plantedRequest) chance(share float64) bool { return r.random.Float64() < share }

// plantedSystems returns a system for each kind of incident.
func plantedSystems() []plantedSystem {
	const m, hour, day = time.Minute, time.Hour, 24 * time.Hour
	const up, searchUp = "checkout, web", "catalog, web"
	fails := func(service string, share float64, from, to time.Duration) func(*plantedRequest) {
		return func(r *plantedRequest) { r.failed = r.in(service, from, to) && r.chance(share) }
	}
	payment := func(share float64, from, to time.Duration) plantedIncident {
		return plantedIncident{source: "payment", from: from, to: to, share: share, reached: up}
	}
	search := func(share float64, from, to time.Duration) plantedIncident {
		return plantedIncident{source: "search", from: from, to: to, share: share, reached: searchUp}
	}
	spikes := func(share float64, length, from, every time.Duration) (list []plantedIncident) {
		for ; from-length < plantedHours*hour; from += every {
			list = append(list, payment(share, min(from, plantedHours*hour), max(0, from-length)))
		}
		return list
	}
	with := func(i plantedIncident, change func(*plantedIncident)) plantedIncident {
		change(&i)
		return i
	}
	bad := func(version string, from, to time.Duration) plantedIncident { // of the demo
		return plantedIncident{source: "payment", from: from, to: to, share: 0.33, reached: "checkout, frontend", version: version,
			inputs: "resource.service.version=" + version + " span.feature_flag.result.variant=on", users: "frontend"}
	}
	return []plantedSystem{
		{kind: "demo", traces: demoTraces, truth: []plantedIncident{
			bad("2.14.1", 30*m, 0), bad("2.14.0", 150*m, 110*m),
		}},
		{kind: "version", hours: 6, perHour: 600, trouble: func(r *plantedRequest) {
			if r.inner == "payment" && r.before <= 30*m && r.host > 0 && r.chance(0.75) {
				r.version = "2.0"
				r.failed = r.chance(0.7)
			}
		}, truth: []plantedIncident{with(payment(0.35, 30*m, 0), func(i *plantedIncident) {
			i.version, i.inputs = "2.0", "resource.service.version=2.0"
		})}},
		{kind: "good version before", trouble: func(r *plantedRequest) {
			if r.in("payment", 3*hour, 0) {
				r.version = "2.0"
			}
			r.failed = r.in("payment", 30*m, 0) && r.chance(0.33)
		}, truth: []plantedIncident{payment(0.33, 30*m, 0)}},
		{kind: "slow growth", trouble: func(r *plantedRequest) {
			r.failed = r.inner == "search" && r.chance(0.4*(1-float64(r.before)/float64(3*hour)))
		}, truth: []plantedIncident{with(search(0.2, 3*hour, 0), func(i *plantedIncident) { i.growing = true })}},
		{kind: "10 min of each 90 min", trouble: func(r *plantedRequest) {
			r.failed = r.inner == "payment" && r.before%(90*m) < 10*m && r.chance(0.5)
		}, truth: spikes(0.5, 10*m, 10*m, 90*m)},
		{kind: "40 min of each 2 h", trouble: func(r *plantedRequest) {
			r.failed = r.inner == "payment" && (r.before-15*m+2*hour)%(2*hour) >= 80*m && r.chance(0.33)
		}, truth: spikes(0.33, 40*m, 15*m, 2*hour)},
		{kind: "ended", trouble: fails("payment", 0.4, 50*m, 15*m), truth: []plantedIncident{payment(0.4, 50*m, 15*m)}},
		{kind: "ended, and again", trouble: func(r *plantedRequest) {
			r.failed = (r.in("payment", 55*m, 40*m) || r.in("payment", 12*m, 0)) && r.chance(0.5)
		}, truth: []plantedIncident{payment(0.5, 12*m, 0), payment(0.5, 55*m, 40*m)}},
		{kind: "two at the same time", trouble: func(r *plantedRequest) {
			r.failed = (r.in("payment", 40*m, 0) || r.in("search", 28*m, 0)) && r.chance(0.4)
		}, truth: []plantedIncident{payment(0.4, 40*m, 0), search(0.4, 28*m, 0)}},
		{kind: "two of different users", trouble: func(r *plantedRequest) {
			if r.inner == "search" {
				r.users = "mobile"
			}
			r.failed = (r.in("payment", 40*m, 0) || r.in("search", 28*m, 0)) && r.chance(0.4)
		}, truth: []plantedIncident{payment(0.4, 40*m, 0), with(search(0.4, 28*m, 0), func(i *plantedIncident) {
			i.reached, i.users = "catalog, mobile", "mobile"
		})}},
		{kind: "one tenant", hours: 5, perHour: 1200, trouble: func(r *plantedRequest) {
			r.failed = r.in("payment", 40*m, 0) && r.tenant == "globex" && r.chance(0.8)
		}, truth: []plantedIncident{with(payment(0.08, 40*m, 0), func(i *plantedIncident) { i.inputs = "span.tenant.id=globex" })}},
		{kind: "one provider", hours: 6, perHour: 600, trouble: func(r *plantedRequest) {
			r.failed = r.in("payment", 40*m, 0) && r.provider == "nova" && r.chance(0.8)
		}, truth: []plantedIncident{with(payment(0.2, 40*m, 0), func(i *plantedIncident) { i.inputs = "span.payment.provider=nova" })}},
		{kind: "one host", hours: 6, perHour: 600, trouble: func(r *plantedRequest) {
			r.failed = r.in("search", 35*m, 0) && r.host == 2 && r.chance(0.9)
		}, truth: []plantedIncident{with(search(0.3, 35*m, 0), func(i *plantedIncident) { i.inputs = "resource.host.name=search-2" })}},
		{kind: "small share", hours: 5, perHour: 1200, trouble: fails("payment", 0.04, 40*m, 0),
			truth: []plantedIncident{payment(0.04, 40*m, 0)}},
		{kind: "few requests", perHour: 40, trouble: fails("search", 0.6, hour, 0), truth: []plantedIncident{search(0.6, hour, 0)}},
		{kind: "just begun", hours: 6, perHour: 600, trouble: fails("payment", 0.5, 4*m, 0), truth: []plantedIncident{payment(0.5, 4*m, 0)}},
		{kind: "total", trouble: fails("payment", 1, 5*m, 0), truth: []plantedIncident{payment(1, 5*m, 0)}},
		{kind: "long", hours: 14, trouble: fails("payment", 0.2, 8*hour, 0), truth: []plantedIncident{payment(0.2, 8*hour, 0)}},
		{kind: "new service", trouble: func(r *plantedRequest) {
			r.absent = r.inner == "search" && r.before > 20*m
			r.failed = r.in("search", 20*m, 0) && r.chance(0.5)
		}, truth: []plantedIncident{search(0.5, 0, 0)}},
		{kind: "slow", trouble: func(r *plantedRequest) {
			if r.in("search", 25*m, 0) {
				r.slower = 8
			}
		}, truth: []plantedIncident{with(search(0, 25*m, 0), func(i *plantedIncident) { i.slow = true })}},
		{kind: "slow on one host", hours: 6, perHour: 600, trouble: func(r *plantedRequest) {
			if r.in("search", 25*m, 0) && r.host == 1 {
				r.slower = 8
			}
		}, truth: []plantedIncident{with(search(0, 25*m, 0), func(i *plantedIncident) {
			i.slow, i.inputs = true, "resource.host.name=search-1"
		})}},
		{kind: "slow callees of the same callers", trouble: func(r *plantedRequest) {
			if r.in("payment", 25*m, 0) && r.chance(0.5) {
				r.failed, r.besides = r.chance(0.7), 8
			}
		}, truth: []plantedIncident{with(payment(0.35, 25*m, 0), func(i *plantedIncident) { i.reached = up + ", stock" })}},
		{kind: "at night, each night", nightly: true, hours: 5 * 24, perHour: 100, trouble: func(r *plantedRequest) {
			r.failed = r.inner == "payment" && r.before%day < 40*m && r.chance(0.2)
		}},
		{kind: "at night, few requests", hours: 5 * 24, perHour: 120, trouble: func(r *plantedRequest) {
			r.dropped = (r.before+12*hour)%day >= 6*hour && r.chance(0.7) // 36 an hour
			r.failed = r.in("payment", 50*m, 0) && r.chance(0.6)
		}, truth: []plantedIncident{payment(0.6, 50*m, 0)}},
		{kind: "few errors all the time", trouble: func(r *plantedRequest) { r.failed = r.inner == "payment" && r.chance(0.004) }},
		{kind: "many errors all the time", trouble: func(r *plantedRequest) { r.failed = r.inner == "payment" && r.chance(0.1) }},
		{kind: "requests stop", trouble: func(r *plantedRequest) { r.dropped = r.before < 25*m }},
		{kind: "none"},
	}
}

// planted returns the traces of a system.
func (p *plantedSystem) planted(t *testing.T, seed uint64) ptrace.Traces {
	if p.traces != nil {
		return p.traces(t)
	}
	td := ptrace.NewTraces()
	random := rand.New(rand.NewPCG(seed, 5))
	scopes := make(map[string]ptrace.ScopeSpans)
	add := func(r *plantedRequest, id, parent byte, n int, service, version string, took time.Duration, title string) ptrace.Span {
		host := r.random.IntN(plantedHosts)
		if service == r.inner {
			host = r.host
		}
		key := fmt.Sprint(service, version, host)
		if _, ok := scopes[key]; !ok {
			scopes[key] = querytest.AddService(td, service)
			resource := td.ResourceSpans().At(td.ResourceSpans().Len() - 1).Resource().Attributes()
			resource.PutStr("service.version", version)
			resource.PutStr("host.name", fmt.Sprint(service, "-", host))
		}
		at := querytest.Noon.Add(-r.before)
		trace := pcommon.TraceID{12: 1, 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)}
		s := querytest.AddSpan(scopes[key], trace, id, parent, "handle "+service, at.Sub(querytest.Start))
		s.SetKind(ptrace.SpanKindServer)
		s.SetEndTimestamp(pcommon.NewTimestampFromTime(at.Add(took)))
		if r.failed && service != "stock" {
			s.Status().SetCode(ptrace.StatusCodeError)
			if title != "" {
				s.Attributes().PutStr("error.type", title)
			}
		}
		return s
	}
	gap := time.Hour / time.Duration(cmp.Or(p.perHour, 300))
	for n := int(time.Duration(cmp.Or(p.hours, plantedHours)) * time.Hour / gap); n >= 1; n-- {
		r := &plantedRequest{random: random, before: time.Duration(n)*gap - gap/2, inner: "payment", users: "web",
			version: "1.0", slower: 1, besides: 1}
		middle := "checkout"
		if random.IntN(2) == 0 {
			middle, r.inner = "catalog", "search"
		}
		r.tenant = []string{"acme", "acme", "acme", "acme", "initech", "initech", "initech", "umbrella", "umbrella", "globex"}[random.IntN(10)]
		r.provider = []string{"northpay", "northpay", "nova", "alipay"}[random.IntN(4)]
		r.host = random.IntN(plantedHosts)
		if p.trouble != nil {
			p.trouble(r)
		}
		if r.dropped {
			continue
		}
		took := time.Duration((20 + 20*random.Float64()) * r.slower * float64(time.Millisecond))
		besides := time.Duration(r.besides * float64(5*time.Millisecond))
		root := add(r, 1, 0, n, r.users, "1.0", took+besides+20*time.Millisecond, "")
		root.Attributes().PutStr("tenant.id", r.tenant)
		root.Attributes().PutStr("client.version", []string{"7.1", "7.2", "8.0"}[random.IntN(3)])
		add(r, 2, 1, n, middle, "1.0", took+besides+10*time.Millisecond, "")
		if !r.absent {
			inner := add(r, 3, 2, n, r.inner, r.version, took, "Timeout")
			if r.inner == "payment" {
				inner.Attributes().PutStr("payment.provider", r.provider)
			}
		}
		if middle == "checkout" {
			add(r, 4, 2, n, "stock", "1.0", besides, "")
		}
	}
	return td
}

// demoTraces returns three hours of the demo. The second bad version runs for half an hour.
func demoTraces(t *testing.T) ptrace.Traces {
	td := ptrace.NewTraces()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received, err := demoRequest(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		received.Traces().ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
	}))
	defer receiver.Close()
	_, err := demo.Run(t.Context(), demo.Options{OTLP: receiver.URL, Direct: true, Header: http.Header{}, Rate: 0.4, Seed: 7,
		Backfill: 3 * time.Hour, DeployAfter: 30 * time.Minute, Once: true, Now: func() time.Time { return querytest.Noon }})
	if err != nil {
		t.Fatal(err)
	}
	return td
}

func demoRequest(r *http.Request) (ptraceotlp.ExportRequest, error) {
	out := ptraceotlp.NewExportRequest()
	body, err := gzip.NewReader(r.Body)
	if err != nil {
		return out, err
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return out, err
	}
	return out, out.UnmarshalProto(data)
}
