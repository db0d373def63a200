package query_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/harness"
)

// linkName is what calls are counted by in answers of /api/dependencies with details.
type linkName struct{ Parent, Child, ConnectionType string }

// linkSums is how the calls went.
type linkSums struct{ CallCount, ErrorCount, DurationSum int }

// uiLink is an element of the answer.
type uiLink struct {
	linkName
	linkSums
}

// linkAt is one call, its duration in nanoseconds.
type linkAt struct {
	uiLink
	start uint64
}

// linksOf returns all calls of the data set between different services and to what sends no spans.
func linksOf(d *bench.Dataset, spans int) (out []linkAt) {
	for i := range d.Traces(spans) {
		trace := d.Trace(i)
		byID, parents := map[otlpdata.SpanID]*bench.Span{}, map[otlpdata.SpanID]bool{}
		for j := range trace {
			byID[trace[j].SpanID], parents[trace[j].ParentID] = &trace[j], true
		}
		service := func(s *bench.Span) string { return d.Resources()[s.Resource].Service }
		for j := range trace {
			s := &trace[j]
			call := linkAt{uiLink{linkSums: linkSums{1, 0, int(s.End - s.Start)}}, s.Start}
			if s.StatusCode == otlpdata.StatusError {
				call.ErrorCount = 1
			}
			if p := byID[s.ParentID]; p != nil && service(p) != service(s) {
				call.linkName = linkName{service(p), service(s), ""}
				if p.Kind == otlpdata.KindProducer || s.Kind == otlpdata.KindConsumer {
					call.ConnectionType = "messaging_system"
				}
				out = append(out, call)
			}
			if peer := systemOf(s); peer != "" && !parents[s.SpanID] {
				call.linkName = linkName{service(s), peer, "virtual_node"}
				out = append(out, call)
			}
		}
	}
	return out
}

// systemOf returns the database or queue that a span of the data set calls.
func systemOf(s *bench.Span) string {
	for _, kv := range s.Attributes {
		if (kv.Key == "db.system.name" || kv.Key == "messaging.system") && (s.Kind == otlpdata.KindClient || s.Kind == otlpdata.KindProducer) {
			return kv.Value.Str()
		}
	}
	return ""
}

// TestDependencies: every store counts every call once, its error and duration included, whatever the window, in whatever order spans come,
// and after a restart.
func TestDependencies(t *testing.T) {
	const spans = 20_000
	stores := map[string][]string{
		"memory": {"exporters::memory::max_bytes=256MiB",
			"service::pipelines::traces::exporters=[memory]", "extensions::query::storage=memory"},
		"disk":     nil,
		"segments": {"exporters::disk::memtable::max_spans=3000"},
	}
	for name, set := range stores {
		t.Run(name, func(t *testing.T) {
			begin := time.Now().Truncate(time.Minute).Add(-3*time.Minute - 5*time.Second)
			data := bench.New(7, begin)
			dir := t.TempDir()
			p := harness.Start(t, append(set, "service::data_dir="+dir)...)
			r, err := load.Run(t.Context(), load.Options{Target: p.OTLPGRPC(), Connections: 2, InFlight: 2, Retry: time.Minute},
				harness.Shuffled(data.Requests(spans, 100)))
			if err != nil || r.Acked < spans {
				t.Fatalf("%d spans were acknowledged, %v", r.Acked, err)
			}
			calls := linksOf(data, spans)
			checkLinks(p, calls, begin)
			if name == "memory" {
				return
			}
			if err := p.Stop(); err != nil {
				t.Fatal(err)
			}
			checkLinks(harness.Start(t, append(set, "service::data_dir="+dir)...), calls, begin)
		})
	}
}

func checkLinks(p *harness.Program, calls []linkAt, begin time.Time) {
	p.T.Helper()
	minute := begin.Truncate(time.Minute).Add(time.Minute) // which ends amidst the spans
	windows := [][2]time.Time{{begin.Add(-time.Hour), begin.Add(time.Minute)}, {minute, minute.Add(time.Minute)},
		{begin.Add(-time.Hour), minute.Add(-time.Millisecond)}, {minute.Add(-time.Millisecond), minute}}
	seed := uint64(time.Now().UnixNano())
	p.T.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 10 {
		from := begin.Add(time.Duration(rng.IntN(10_000)) * time.Millisecond)
		windows = append(windows, [2]time.Time{from, from.Add(time.Duration(rng.IntN(1<<(1+rng.IntN(14)))) * time.Millisecond)})
	}
	found := 0
	for _, w := range windows {
		found += checkLinksWithin(p, calls, w[0], w[1])
	}
	if found == 0 {
		p.T.Error("nothing is called in any window")
	}
	all := harness.Ask[[]uiLink](p, "/api/dependencies")
	some := harness.Ask[[]uiLink](p, "/api/dependencies?service="+url.QueryEscape(all[0].Child))
	if len(some) == 0 || len(some) >= len(all) {
		p.T.Errorf("%d links of one service, %d of all", len(some), len(all))
	}
}

// checkLinksWithin compares the answers for a window with the calls within it, and returns how many there are.
func checkLinksWithin(p *harness.Program, calls []linkAt, from, to time.Time) (found int) {
	p.T.Helper()
	first, last := uint64(from.UnixNano()), uint64(to.Add(time.Millisecond).UnixNano()-1)
	want, detailed := map[linkName]linkSums{}, map[linkName]linkSums{}
	for _, c := range calls {
		if c.start < first || c.start > last {
			continue
		}
		found++
		sum := detailed[c.linkName]
		detailed[c.linkName] = linkSums{sum.CallCount + 1, sum.ErrorCount + c.ErrorCount, sum.DurationSum + c.DurationSum}
		if c.ConnectionType != "virtual_node" {
			name := linkName{Parent: c.Parent, Child: c.Child}
			want[name] = linkSums{CallCount: want[name].CallCount + 1}
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

func linksByName(p *harness.Program, path string) map[linkName]linkSums {
	p.T.Helper()
	out := map[linkName]linkSums{}
	for _, l := range harness.Ask[[]uiLink](p, path) {
		if _, twice := out[l.linkName]; twice {
			p.T.Errorf("%s: %+v is there twice", path, l.linkName)
		}
		out[l.linkName] = l.linkSums
	}
	return out
}
