package query_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// link identifies an edge of the service graph in answers of /api/dependencies with details.
type link struct{ Parent, Child, ConnectionType string }

// linkTotals are the totals of its calls.
type linkTotals struct{ CallCount, ErrorCount, DurationSum int }

// linkAnswer is an element of the response.
type linkAnswer struct {
	link
	linkTotals
}

// call is one call of the data set. Its duration is in nanoseconds.
type call struct {
	linkAnswer
	start uint64
}

// callsBetween returns all calls of the data set between different services and to systems that
// send no spans.
func callsBetween(d *bench.Dataset, spans int) (out []call) {
	for i := range d.Traces(spans) {
		trace := d.Trace(i)
		byID, parents := map[otlpdata.SpanID]*bench.Span{}, map[otlpdata.SpanID]bool{}
		for j := range trace {
			byID[trace[j].SpanID], parents[trace[j].ParentID] = &trace[j], true
		}
		service := func(s *bench.Span) string { return d.Resources()[s.Resource].Service }
		for j := range trace {
			s := &trace[j]
			c := call{linkAnswer{linkTotals: linkTotals{1, 0, int(s.End - s.Start)}}, s.Start}
			if s.StatusCode == otlpdata.StatusError {
				c.ErrorCount = 1
			}
			if p := byID[s.ParentID]; p != nil && service(p) != service(s) {
				c.link = link{service(p), service(s), ""}
				if p.Kind == otlpdata.KindProducer || s.Kind == otlpdata.KindConsumer {
					c.ConnectionType = "messaging_system"
				}
				out = append(out, c)
			}
			if peer := systemOf(s); peer != "" && !parents[s.SpanID] {
				c.link = link{service(s), peer, "virtual_node"}
				out = append(out, c)
			}
		}
	}
	return out
}

// systemOf returns the database or queue that a span calls, or "".
func systemOf(s *bench.Span) string {
	for _, kv := range s.Attributes {
		if (kv.Key == "db.system.name" || kv.Key == "messaging.system") && (s.Kind == otlpdata.KindClient || s.Kind == otlpdata.KindProducer) {
			return kv.Value.Str()
		}
	}
	return ""
}

// TestDependencies checks that every store counts every call, its error and its duration once, for
// any time range, when spans arrive in random order, and after a restart.
func TestDependencies(t *testing.T) {
	soak.SkipIfRaced(t)
	const spans = 20_000
	begin := time.Now().Truncate(time.Minute).Add(-3*time.Minute - 5*time.Second)
	data := bench.New(7, begin)
	calls := callsBetween(data, spans)
	testDataset(t, data, spans, func(p *inprocess.Program) { checkLinks(p, calls, begin) })
}

// checkLinks compares the answers for fixed and random time ranges with the calls.
func checkLinks(p *inprocess.Program, calls []call, begin time.Time) {
	p.T.Helper()
	minute := begin.Truncate(time.Minute).Add(time.Minute) // ends between the spans
	windows := [][2]time.Time{{begin.Add(-time.Hour), begin.Add(time.Minute)}, {minute, minute.Add(time.Minute)},
		{begin.Add(-time.Hour), minute.Add(-time.Millisecond)}, {minute.Add(-time.Millisecond), minute}}
	rng := rand.New(rand.NewPCG(soak.Seed(p.T), 0))
	for range 10 {
		from := begin.Add(time.Duration(rng.IntN(10_000)) * time.Millisecond)
		windows = append(windows, [2]time.Time{from, from.Add(time.Duration(rng.IntN(1<<(1+rng.IntN(14)))) * time.Millisecond)})
	}
	found := 0
	for _, w := range windows {
		found += checkLinksWithin(p, calls, w[0], w[1])
	}
	if found == 0 {
		p.T.Error("no calls in any time range")
	}
	all := inprocess.Ask[[]linkAnswer](p, "/api/dependencies")
	some := inprocess.Ask[[]linkAnswer](p, "/api/dependencies?service="+url.QueryEscape(all[0].Child))
	if len(some) == 0 || len(some) >= len(all) {
		p.T.Errorf("%d links of one service, %d of all services", len(some), len(all))
	}
}

// checkLinksWithin compares the answers for a time range with the calls in it, and returns their
// number.
func checkLinksWithin(p *inprocess.Program, calls []call, from, to time.Time) (found int) {
	p.T.Helper()
	first, last := uint64(from.UnixNano()), uint64(to.Add(time.Millisecond).UnixNano()-1)
	want, detailed := map[link]linkTotals{}, map[link]linkTotals{}
	for _, c := range calls {
		if c.start < first || c.start > last {
			continue
		}
		found++
		sum := detailed[c.link]
		detailed[c.link] = linkTotals{sum.CallCount + 1, sum.ErrorCount + c.ErrorCount, sum.DurationSum + c.DurationSum}
		if c.ConnectionType != "virtual_node" {
			name := link{Parent: c.Parent, Child: c.Child}
			want[name] = linkTotals{CallCount: want[name].CallCount + 1}
		}
	}
	for name, sum := range detailed {
		sum.DurationSum /= 1000
		detailed[name] = sum
	}
	path := fmt.Sprintf("/api/dependencies?endTs=%d&lookback=%d", to.UnixMilli(), to.Sub(from).Milliseconds())
	if got := linksByName(p, path); !maps.Equal(got, want) {
		p.T.Errorf("%s:\n got %v\nwant %v", path, got, want)
	}
	if got := linksByName(p, path+"&details=true"); !maps.Equal(got, detailed) {
		p.T.Errorf("%s with details:\n got %v\nwant %v", path, got, detailed)
	}
	return found
}

func linksByName(p *inprocess.Program, path string) map[link]linkTotals {
	p.T.Helper()
	out := map[link]linkTotals{}
	for _, l := range inprocess.Ask[[]linkAnswer](p, path) {
		if _, duplicate := out[l.link]; duplicate {
			p.T.Errorf("%s: duplicate link %+v", path, l.link)
		}
		out[l.link] = l.linkTotals
	}
	return out
}
