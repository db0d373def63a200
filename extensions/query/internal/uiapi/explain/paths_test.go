package explain

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/callpath"
)

// plantedTrace is a trace of a shop that grows while it is generated: checkouts and searches, 9
// services, 20 operations. Times in nanoseconds.
type plantedTrace struct {
	random *rand.Rand
	spans  []tracestore.SummarySpan
	cause  string // "" or what is wrong with the trace
}

const ms = 1e6

// takes returns a random duration with a mean of about ms milliseconds.
func (t *plantedTrace) takes(mean float64) float64 {
	return mean * ms * math.Exp(0.5*t.random.NormFloat64()-0.125)
}

// within adds what a span does from a time on, and returns when it ends.
type within func(span int, at float64) float64

// call adds a span that begins at a time, with own work before, and then after, what do adds. It
// returns the end.
func (t *plantedTrace) call(parent int, service, name string, kind int32, start, own float64, do within) float64 {
	span := len(t.spans)
	id := otlpdata.SpanID{1, byte(span >> 8), byte(span)}
	s := tracestore.SummarySpan{ID: id, Start: uint64(1e15 + start), Service: service, Name: name, Kind: kind}
	if parent >= 0 {
		s.Parent = t.spans[parent].ID
	}
	t.spans = append(t.spans, s)
	own = t.takes(own)
	end := start + own/2
	if do != nil {
		end = do(span, end)
	}
	end += own / 2
	t.spans[span].Duration = uint64(end - start)
	return end
}

// remote adds a call of a service by another one: a client span and a server span.
func (t *plantedTrace) remote(parent int, from, to, name string, at, own float64, do within) float64 {
	return t.call(parent, from, to+"/"+name, otlpdata.KindClient, at, 0.4, func(span int, at float64) float64 {
		return t.call(span, to, name, otlpdata.KindServer, at, own, do)
	})
}

// query adds a call of a database, which sends no spans.
func (t *plantedTrace) query(parent int, service, name string, at, own float64) float64 {
	return t.call(parent, service, name, otlpdata.KindClient, at, own, nil)
}

func (t *plantedTrace) generate() {
	t.call(-1, "frontend", "POST /checkout", otlpdata.KindServer, 0, 3, func(root int, at float64) float64 {
		at = t.remote(root, "frontend", "cart", "GetCart", at, 1, func(s int, at float64) float64 { return t.query(s, "cart", "HGETALL", at, 2) })
		at = t.remote(root, "frontend", "catalog", "ListProducts", at, 2, func(s int, at float64) float64 {
			for range 1 + t.random.IntN(4) {
				at = t.query(s, "catalog", "SELECT products", at, t.slower("shard", 2, 15))
			}
			return at
		})
		at = t.remote(root, "frontend", "currency", "Convert", at, t.slower("host", 1, 25), nil)
		return t.remote(root, "frontend", "checkout", "PlaceOrder", at, 2, t.placeOrder)
	})
}

func (t *plantedTrace) placeOrder(order int, at float64) float64 {
	at = t.remote(order, "checkout", "inventory", "Reserve", at, t.slower("lock", 2, 40), func(s int, at float64) float64 {
		return t.query(s, "inventory", "UPDATE stock", at, 3)
	})
	attempts := 1
	if t.cause == "retries" {
		attempts = 4
	}
	for range attempts {
		at = t.remote(order, "checkout", "payment", "Charge", at, 5, func(s int, at float64) float64 {
			return t.query(s, "payment", "POST bank", at, t.slower("dependency", 8, 60))
		})
		t.spans[len(t.spans)-1].Failed = attempts > 1
	}
	if t.random.Float64() < 0.3 {
		at = t.remote(order, "checkout", "fraud", "Check", at, 4, nil)
	}
	return t.remote(order, "checkout", "mail", "Send", at, 1, func(s int, at float64) float64 { return t.query(s, "mail", "publish", at, 1) })
}

// slower returns a mean duration: normal, or that with the cause.
func (t *plantedTrace) slower(cause string, normal, slow float64) float64 {
	if t.cause == cause {
		return slow
	}
	return normal
}

// planted returns the profile of generated traces. cause returns what is wrong with a trace, and
// selected which traces are selected, by their number and duration relative to the others (0 to 1).
func planted(seed uint64, traces int, cause func(*rand.Rand) string, selected func(r *rand.Rand, cause string, rank float64) bool,
) tracestore.PathProfile {
	random := rand.New(rand.NewPCG(seed, 1))
	var all []*plantedTrace
	for range traces {
		t := &plantedTrace{random: random, cause: cause(random)}
		t.generate()
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *plantedTrace) int { return int(a.spans[0].Duration) - int(b.spans[0].Duration) })
	var counter callpath.Counter
	var tree callpath.Tree
	for i, t := range all {
		tree.Build(t.spans)
		counter.AddTrace(&tree, otlpdata.TraceID{byte(i >> 8), byte(i)}, selected(random, t.cause, float64(i)/float64(len(all))))
	}
	return counter.Answer()
}

func never(*rand.Rand) string { return "" }

func sometimes(cause string) func(*rand.Rand) string {
	return func(r *rand.Rand) string {
		if r.Float64() < 0.04 {
			return cause
		}
		return ""
	}
}

func slowest(_ *rand.Rand, _ string, rank float64) bool { return rank >= 0.95 }

func anyTenth(r *rand.Rand, _ string, _ float64) bool { return r.Float64() < 0.1 }

// TestPlantedTimes plants causes in 4 % of the traces, and looks for them among the slowest 5 %.
func TestPlantedTimes(t *testing.T) {
	for cause, want := range map[string]string{"shard": "catalog SELECT products", "host": "currency Convert",
		"lock": "inventory Reserve", "dependency": "payment POST bank"} {
		for seed := range uint64(5) {
			p := planted(seed, 4000, sometimes(cause), slowest)
			got := RankTime(&p)
			if at := slices.IndexFunc(got.Operations, func(l TimeLine) bool { return l.Service+" "+l.Name == want }); at < 0 || at > 2 {
				t.Errorf("%s, seed %d: %s is at index %d of the operations: %s", cause, seed, want, at, timesText(got.Operations))
			}
			if at := slices.IndexFunc(got.Paths, func(l TimeLine) bool { return l.Service+" "+l.Name == want }); at < 0 || at > 2 {
				t.Errorf("%s, seed %d: %s is at index %d of the paths: %s", cause, seed, want, at, timesText(got.Paths))
			}
		}
	}
}

func TestPlantedRetries(t *testing.T) {
	for seed := range uint64(5) {
		p := planted(seed, 4000, sometimes("retries"), slowest)
		got := RankShape(&p)
		at := slices.IndexFunc(got, func(l ShapeLine) bool { return l.Service == "checkout" && l.Name == "payment/Charge" })
		if at < 0 || at > 2 {
			t.Errorf("seed %d: retries are at index %d: %s", seed, at, shapesText(got))
		} else if l := got[at]; l.Selected.Calls < 2 || l.Rest.Calls > 1.1 || l.Below != 2 {
			t.Errorf("seed %d: line %+v", seed, l)
		}
	}
}

// TestNothingPlanted: a random tenth of the traces differs from the others by chance only. Of the
// slowest, all operations are slower, but most of them explain little.
func TestNothingPlanted(t *testing.T) {
	const most = 5
	for seed := range uint64(20) {
		p := planted(100+seed, 4000, never, anyTenth)
		if times, shapes := RankTime(&p), RankShape(&p); len(times.Operations)+len(times.Paths)+len(shapes) > 1 {
			t.Errorf("random traces, seed %d: %s; %s", seed, timesText(times.Operations), shapesText(shapes))
		}
		p = planted(200+seed, 4000, never, slowest)
		if times, shapes := RankTime(&p), RankShape(&p); max(len(times.Operations), len(times.Paths), len(shapes)) > most {
			t.Errorf("slowest traces, seed %d: %s; %s", seed, timesText(times.Operations), shapesText(shapes))
		}
	}
}

// TestManySmallTimes: if the difference is spread over many operations, the largest are listed.
func TestManySmallTimes(t *testing.T) {
	p := tracestore.PathProfile{Selected: tracestore.PathSet{Traces: 100, Time: 4000 * 100, TimeSquares: 4000 * 4000 * 100},
		Rest: tracestore.PathSet{Traces: 100, Time: 2000 * 100, TimeSquares: 2000 * 2000 * 100}}
	for i := range uint64(20) {
		of := func(mean uint64) tracestore.PathCounts {
			return tracestore.PathCounts{Traces: 100, Calls: 100, SelfTime: 100 * mean, SelfSquares: float64(101 * mean * mean), CallSquares: 100}
		}
		p.Operations = append(p.Operations, tracestore.OperationProfile{Name: fmt.Sprint(i), Selected: of(200 + i), Rest: of(100)})
	}
	got := RankTime(&p)
	if text := fmt.Sprint(timesText(got.Operations)); len(got.Operations) != 3 || got.Differ != 20 || got.Operations[0].Name != "19" {
		t.Errorf("%d differ; lines %s", got.Differ, text)
	}
	p.Selected.Traces = minTraces - 1
	if got := RankTime(&p); len(got.Operations) > 0 || got.Differ > 0 {
		t.Errorf("few traces: %+v", got)
	}
}

func timesText(lines []TimeLine) (out []string) {
	for _, l := range lines {
		out = append(out, fmt.Sprintf("%s %s %.2f ms (%.0f %%)", l.Service, l.Name, l.Difference/ms, 100*l.Share))
	}
	return out
}

func shapesText(lines []ShapeLine) (out []string) {
	for _, l := range lines {
		out = append(out, fmt.Sprintf("%s %s %.2f (%.2f, %.2f)", l.Service, l.Name, l.Score, l.Selected, l.Rest))
	}
	return out
}
