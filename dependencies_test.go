package tracing_test

import (
	"fmt"
	"maps"
	"net/url"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/internal/bench"
	"github.com/tracing-backend/tracing/internal/bench/load"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// uiLink is an element of the answer of /api/dependencies.
type uiLink struct {
	Parent, Child string
	CallCount     int
}

// linksOf counts the calls between different services whose spans start within two times, both inclusive.
func linksOf(d *bench.Dataset, spans int, from, to time.Time) map[[2]string]int {
	out := map[[2]string]int{}
	for i := range d.Traces(spans) {
		trace := d.Trace(i)
		services := map[otlpdata.SpanID]string{}
		for _, s := range trace {
			services[s.SpanID] = d.Resources()[s.Resource].Service
		}
		for _, s := range trace {
			link := [2]string{services[s.ParentID], services[s.SpanID]}
			if !s.ParentID.IsZero() && link[0] != link[1] &&
				s.Start >= uint64(from.UnixNano()) && s.Start <= uint64(to.UnixNano()) {
				out[link]++
			}
		}
	}
	return out
}

// TestDependencies: every store counts every call once, whatever the window, wherever spans lie, and after a restart.
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
			begin := time.Now().Truncate(time.Minute).Add(-3*time.Minute - 10*time.Second)
			data := bench.New(7, begin)
			dir := t.TempDir()
			p := start(t, append(set, "service::data_dir="+dir)...)
			r, err := load.Run(t.Context(), load.Options{Target: p.grpc(), Connections: 2, InFlight: 2, Retry: time.Minute}, data.Requests(spans, 100))
			if err != nil || r.Acked < spans {
				t.Fatalf("%d spans were acknowledged, %v", r.Acked, err)
			}
			checkLinks(p, data, spans, begin)
			if name == "memory" {
				return
			}
			if err := p.stop(); err != nil {
				t.Fatal(err)
			}
			checkLinks(start(t, append(set, "service::data_dir="+dir)...), data, spans, begin)
		})
	}
}

func checkLinks(p *program, data *bench.Dataset, spans int, begin time.Time) {
	p.t.Helper()
	last := begin.Add(time.Minute)
	for _, w := range [][2]time.Time{
		{begin.Add(-time.Hour), last}, {begin.Add(1500 * time.Millisecond), begin.Add(4 * time.Second)},
		{begin.Add(5 * time.Second), last}, {begin.Add(-time.Hour), begin.Add(7321 * time.Millisecond)},
	} {
		path := fmt.Sprintf("/api/dependencies?endTs=%d&lookback=%d", w[1].UnixMilli(), w[1].Sub(w[0]).Milliseconds())
		got := map[[2]string]int{}
		for _, l := range ask[[]uiLink](p, path) {
			got[[2]string{l.Parent, l.Child}] += l.CallCount
		}
		want := linksOf(data, spans, w[0], w[1].Add(time.Millisecond-time.Nanosecond))
		if len(want) == 0 || !maps.Equal(got, want) {
			p.t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
	all := ask[[]uiLink](p, "/api/dependencies")
	some := ask[[]uiLink](p, "/api/dependencies?service="+url.QueryEscape(all[0].Child))
	if len(some) == 0 || len(some) >= len(all) {
		p.t.Errorf("%d links of one service, %d of all", len(some), len(all))
	}
}
