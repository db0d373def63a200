package host_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
)

// shelves runs source -> processors -> sink with the processors shelf, sieve and step.
type shelves struct {
	*hosttest.Program
	w    *hosttest.World
	load func(processors string) (*app.Config, error)

	mu    sync.Mutex
	shelf *hosttest.Shelf // the latest
}

func startShelves(t *testing.T, processors string, stopTimeout time.Duration) *shelves {
	t.Helper()
	s := &shelves{w: hosttest.NewWorld()}
	factories := append(s.w.Factories(), s.w.SieveFactory(), s.w.ShelfFactory(func(shelf *hosttest.Shelf) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.shelf = shelf
	}))
	s.load = func(processors string) (*app.Config, error) {
		return s.w.LoadWith(factories, fmt.Sprintf("receivers: {source: }\nprocessors: {shelf: , shelf/b: , sieve: , step: }\n"+
			"exporters: {sink: }\nservice: {limits: {held_retry: 3s}, pipelines: {traces: "+
			"{receivers: [source], processors: [%s], exporters: [sink]}}}\n", processors))
	}
	config, err := s.load(processors)
	if err != nil {
		t.Fatal(err)
	}
	s.Program = hosttest.NewProgram(t, config, pipeline.SystemEnv())
	s.StartWithin(t, stopTimeout)
	return s
}

func (s *shelves) send(t *testing.T, b *otlpdata.Batch) {
	t.Helper()
	if err := s.w.Source["source"].Consume(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// checkCounts checks some of Counts of the processors, written `shelf in:1 sent:1 sieve dropped:2`.
func (s *shelves) checkCounts(t *testing.T, want string) {
	t.Helper()
	got := s.Counts(t)
	component := ""
	for _, f := range strings.Fields(want) {
		outcome, n, counts := strings.Cut(f, ":")
		if !counts {
			component = f
			continue
		}
		if key := "processor " + component + " " + outcome; fmt.Sprint(got[key]) != n {
			t.Errorf("%s is %d, want %s", key, got[key], n)
		}
	}
}

func (s *shelves) held(t *testing.T) string {
	t.Helper()
	return strings.Join(s.Metrics(t, "tracing_held_spans"), " ")
}

func TestHolderCountsWhatItHolds(t *testing.T) {
	s := startShelves(t, "sieve, shelf, step", time.Minute)
	s.send(t, hosttest.BatchFor("", "dust"))
	s.send(t, hosttest.BatchFor("", "a"))
	s.send(t, hosttest.BatchFor("t", "b"))
	s.checkCounts(t, "sieve in:3 sent:2 dropped:1 shelf in:2 sent:0")
	if got := s.held(t); got != `tracing_held_spans{component="shelf"} 2` {
		t.Error(got)
	}
	s.shelf.Release(t.Context())
	s.checkCounts(t, "shelf sent:2 step in:2 sent:2")
	s.send(t, hosttest.BatchFor("", "c"))
	s.shelf.Drop(pipeline.DroppedByPolicy)
	s.checkCounts(t, "shelf in:3 sent:2 dropped:1")
	if lost := s.Intake().Dropped; lost != 0 {
		t.Errorf("%d spans count as lost, but the policy dropped them", lost)
	}
	s.send(t, hosttest.BatchFor("", "d"))
	s.shelf.Drop(pipeline.DroppedByEvicted)
	if lost := s.Intake().Dropped; lost != 1 {
		t.Errorf("%d spans count as lost, want 1", lost)
	}
	if lines := s.Logged(t, "pipeline ready"); lines[0]["acknowledged-spans-are"] != "shelf: in memory, later sink: in memory" {
		t.Error(lines[0])
	}
	s.CheckBalanced(t)
}

func TestHolderRetriesTemporaryErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startShelves(t, "shelf", time.Minute)
		attempts, begin := 0, time.Now()
		s.w.Accept = func(string, *otlpdata.Batch) error {
			if attempts++; attempts < 4 {
				return pipeline.Unavailable(errors.New("gone"), time.Millisecond)
			}
			return nil
		}
		s.send(t, hosttest.BatchFor("", "a"))
		s.shelf.Release(t.Context())
		s.checkCounts(t, "shelf in:1 sent:1 dropped:0")
		if took := time.Since(begin); attempts != 4 || took != 700*time.Millisecond {
			t.Errorf("%d attempts in %s, want 4 in 700ms", attempts, took)
		}
		s.w.Accept = func(string, *otlpdata.Batch) error { return pipeline.Overloaded(errors.New("full"), time.Second) }
		s.send(t, hosttest.BatchFor("", "b"))
		s.shelf.Release(t.Context())
		s.checkCounts(t, "shelf in:2 sent:1 dropped:1")
		s.w.Accept = func(string, *otlpdata.Batch) error { return pipeline.Permanent(errors.New("bad")) }
		s.send(t, hosttest.BatchFor("", "c"))
		s.shelf.Release(t.Context())
		s.checkCounts(t, "shelf in:3 sent:1 dropped:2")
		if held := s.held(t); !strings.HasSuffix(held, " 0") {
			t.Error(held)
		}
		if err := s.End(); err != nil {
			t.Error(err)
		}
		s.CheckBalanced(t)
	})
}

// TestHolderStopsWithSpans checks that spans which cannot be passed on before the process ends are
// counted and logged.
func TestHolderStopsWithSpans(t *testing.T) {
	for name, stopTimeout := range map[string]time.Duration{"in time": time.Minute, "too late": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := startShelves(t, "shelf, step", stopTimeout)
				s.send(t, hosttest.BatchFor("", "a"))
				s.End() //nolint:errcheck // the fake returns none
				want, lines := "shelf sent:1 dropped:0", 0
				if stopTimeout == 0 {
					want, lines = "shelf sent:0 dropped:1", 1
				}
				s.checkCounts(t, want)
				if got := s.Lines(t, "spans that a processor held were dropped"); len(got) != lines {
					t.Errorf("logged %v", got)
				}
				s.CheckBalanced(t)
			})
		})
	}
}

// Spans that were given up count as dropped, even if the next hop has accepted some of the request
// that they were joined to: it is unknown which.
func TestHolderGivesUpPartOfARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hosttest.NewWorld()
		var shelf *hosttest.Shelf
		down := func(ctx context.Context, _ *otlpdata.Batch) error {
			pipeline.ProgressOf(ctx).Taken = 2
			return errors.New("down")
		}
		factories := append(w.Factories(), w.ShelfFactory(func(s *hosttest.Shelf) { shelf = s }), pipeline.Exporter("net",
			func() hosttest.NetConfig { return hosttest.NetConfig{Delivery: pipeline.DefaultDelivery()} },
			func(pipeline.Settings, hosttest.NetConfig) (*hosttest.Net, error) {
				return &hosttest.Net{Send: down}, nil
			}))
		c, err := w.LoadWith(factories, "receivers: {source: }\nprocessors: {shelf: }\nexporters: {net: {retry_on_failure: "+
			"{initial_interval: 1s, max_elapsed_time: 2s}}}\nservice: {limits: {held_retry: 1s}, pipelines: {traces: "+
			"{receivers: [source], processors: [shelf], exporters: [net]}}}\n")
		if err != nil {
			t.Fatal(err)
		}
		s := &shelves{w: w, shelf: shelf, Program: hosttest.NewProgram(t, c, pipeline.SystemEnv())}
		s.StartWithin(t, time.Minute)
		for range 3 {
			s.send(t, hosttest.BatchFor("", "a"))
		}
		shelf.Release(t.Context())
		s.checkCounts(t, "shelf in:3 sent:0 dropped:3")
		if err := s.End(); err != nil {
			t.Error(err)
		}
		s.CheckBalanced(t)
	})
}

// A holder that cannot be started holds nothing: its place in the metrics goes with it.
func TestHolderThatDoesNotStart(t *testing.T) {
	for _, panics := range []bool{false, true} {
		s := startShelves(t, "shelf", time.Minute)
		s.w.Fail["start shelf/b"], s.w.Panics["start shelf/b"] = errors.New("no"), panics
		if err := s.Reload(t.Context(), func() (*app.Config, error) { return s.load("shelf, shelf/b") }); err == nil {
			t.Fatal("reloaded")
		}
		s.send(t, hosttest.BatchFor("", "a"))
		if got := s.held(t); got != `tracing_held_spans{component="shelf"} 1` {
			t.Errorf("panics=%v: %s", panics, got)
		}
		if err := s.End(); err != nil {
			t.Error(err)
		}
		s.CheckBalanced(t)
	}
}

func TestHolderWarnsBeforeDisk(t *testing.T) {
	w := hosttest.NewWorld()
	factories := append(w.Factories(), w.ShelfFactory(func(*hosttest.Shelf) {}), pipeline.Exporter("net",
		func() hosttest.NetConfig { return hosttest.NetConfig{Delivery: pipeline.DefaultDelivery()} },
		func(pipeline.Settings, hosttest.NetConfig) (*hosttest.Net, error) { return &hosttest.Net{}, nil }))
	for queue, want := range map[string]string{
		"{storage: disk}": "c.yaml:4:23: service.pipelines.traces: processor shelf acknowledges spans and then holds them in memory: " +
			"if the process is killed, these are lost, although exporter net keeps spans on disk",
		"{}": "", "{storage: disk, enabled: false}": "",
	} {
		c, err := w.LoadWith(factories, fmt.Sprintf("receivers: {source: }\nprocessors: {shelf: }\nexporters: {net: {sending_queue: %s}}\n"+
			"service: {pipelines: {traces: {receivers: [source], processors: [shelf], exporters: [net]}}}\n", queue))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(c.Warnings(), "\n"); got != want {
			t.Errorf("queue %s warns:\n%s\nwant:\n%s", queue, got, want)
		}
	}
}

// TestHoldersStayBalanced sends, releases, drops, reloads and fails at random, and checks that
// every span is accounted for and that none has another tenant.
func TestHoldersStayBalanced(t *testing.T) {
	seed := soak.Seed(t)
	for round := range soak.Rounds(t, 200, 40) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, uint64(round)))
			s := startShelves(t, "shelf, step", time.Duration(r.IntN(2))*time.Minute)
			answers := rand.New(rand.NewPCG(seed, ^uint64(round)))
			var mu sync.Mutex // of responses and arrived: components also stop in the background
			arrived := map[string]int{}
			s.w.Accept = func(_ string, b *otlpdata.Batch) error {
				mu.Lock()
				defer mu.Unlock()
				switch answers.IntN(4) {
				case 0:
					return pipeline.Unavailable(errors.New("gone"), 0)
				case 1:
					return []error{pipeline.Permanent(errors.New("bad")), &pipeline.Partial{Rejected: 1}}[answers.IntN(2)]
				}
				arrived[b.Meta().Tenant] += b.Len()
				return nil
			}
			sent := map[string]int{}
			for range 30 {
				switch r.IntN(6) {
				case 0:
					s.shelf.Release(t.Context())
				case 1:
					s.shelf.Drop([]string{pipeline.DroppedByPolicy, pipeline.DroppedByEvicted}[r.IntN(2)])
				case 2:
					processors := []string{"shelf, step", "shelf", "shelf/b", "sieve, shelf", "step", "shelf, shelf/b"}[r.IntN(6)]
					if err := s.Reload(t.Context(), func() (*app.Config, error) { return s.load(processors) }); err != nil {
						t.Fatal(err)
					}
				default:
					tenant := fmt.Sprint(r.IntN(3))
					if s.w.Source["source"].Consume(t.Context(), hosttest.BatchFor(tenant, []string{"dust", "a"}[r.IntN(2)])) == nil {
						sent[tenant]++
					}
				}
			}
			s.End() //nolint:errcheck // spans may be left, which is counted
			s.CheckBalanced(t)
			for tenant, n := range arrived {
				if n > sent[tenant] {
					t.Errorf("round %d: tenant %s has %d spans of %d", round, tenant, n, sent[tenant])
				}
			}
		})
	}
}
