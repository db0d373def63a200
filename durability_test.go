package tracing_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/internal/bench"
	"github.com/tracing-backend/tracing/internal/bench/load"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Environment variables of TestKill: how often, and from which seed.
const (
	killRounds = "TRACING_KILLS"
	killSeed   = "TRACING_KILL_SEED"
)

func fromEnv(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// ledger says of every span that was sent whether it was acknowledged.
type ledger struct {
	mu     sync.Mutex
	traces map[string]map[string]bool // trace id -> span id -> acknowledged
}

func (l *ledger) note(t testing.TB, body []byte, acked bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := ledgerVisitor{l, acked}
	if err := otlpdata.Walk(body, v); err != nil {
		t.Error(err)
	}
}

type ledgerVisitor struct {
	*ledger
	acked bool
}

func (ledgerVisitor) Resource(*otlpdata.Resource) error { return nil }
func (ledgerVisitor) Scope(*otlpdata.Scope) error       { return nil }

func (v ledgerVisitor) Span(s *otlpdata.Span) error {
	spans := v.traces[s.TraceID.String()]
	if spans == nil {
		spans = make(map[string]bool)
		v.traces[s.TraceID.String()] = spans
	}
	spans[s.SpanID.String()] = spans[s.SpanID.String()] || v.acked
	return nil
}

// check asks the server for every trace and compares: what was acknowledged is there once, and nothing is there that was not sent.
func (l *ledger) check(t *testing.T, query string) (acked, found int) {
	t.Helper()
	for trace, spans := range l.traces {
		have := l.fetch(t, query, trace)
		for id, n := range have {
			if _, sent := spans[id]; !sent || n != 1 {
				t.Errorf("trace %s: span %s is there %d times; sent: %v", trace, id, n, sent)
			}
			found++
		}
		for id, ok := range spans {
			if !ok {
				continue
			}
			if acked++; have[id] == 0 {
				t.Errorf("trace %s: span %s was acknowledged and is lost", trace, id)
			}
		}
		if t.Failed() {
			return acked, found
		}
	}
	return acked, found
}

// fetch returns how often each span of a trace is in the answer.
func (l *ledger) fetch(t *testing.T, query, trace string) map[string]int {
	t.Helper()
	resp, err := http.Get(query + "/api/traces/" + trace)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return nil
	}
	var answer struct {
		Data []struct {
			Spans []struct {
				SpanID string `json:"spanID"`
			} `json:"spans"`
		} `json:"data"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET /api/traces/%s: %s, %v", trace, resp.Status, err)
	}
	have := make(map[string]int)
	for _, tr := range answer.Data {
		for _, s := range tr.Spans {
			have[s.SpanID]++
		}
	}
	return have
}

// TestKill kills the real program under load, again and again on one folder, and starts it again: every acknowledged span is readable, each
// once, and nothing appears that was not sent. Rounds differ in when they are killed and in how often memtables become segments.
func TestKill(t *testing.T) {
	rounds, seed := fromEnv(t, killRounds, 10), fromEnv(t, killSeed, uint64(time.Now().UnixNano()))
	t.Logf("%s=%d", killSeed, seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	for round := range rounds {
		l := &ledger{traces: make(map[string]map[string]bool)}
		memtable := []string{"1000", "4000", "500000"}[rnd.IntN(3)]
		loadAndKill(t, dir, memtable, rnd, l)

		began := time.Now()
		p := startOnDisk(t, dir, memtable)
		p.await("msg", "Health Check state change", "status", "ready")
		ready := time.Since(began)
		acked, found := l.check(t, "http://"+p.address("query", "http"))
		if t.Failed() {
			t.Fatalf("round %d, %s=%d", round, killSeed, seed)
		}
		if round%2 == 0 {
			p.terminate()
		} else {
			p.cmd.Process.Kill()
			p.wait()
		}
		t.Logf("round %d: %d spans acknowledged, %d found, ready after %v", round, acked, found, ready.Round(time.Millisecond))
	}
	http.DefaultClient.CloseIdleConnections()
}

func startOnDisk(t *testing.T, dir, maxSpans string) *process {
	t.Helper()
	args := []string{"all-in-one", "--set", "service::data_dir=" + dir, "--set", "exporters::disk::memtable::max_spans=" + maxSpans,
		"--set", "exporters::disk::reserve=0"}
	for _, s := range anyPort {
		args = append(args, "--set", s)
	}
	return run(t, args...)
}

func loadAndKill(t *testing.T, dir, maxSpans string, rnd *rand.Rand, l *ledger) {
	t.Helper()
	p := startOnDisk(t, dir, maxSpans)
	target := p.address("otlp", "protocols.grpc")
	p.await("msg", "Health Check state change", "status", "ready")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first := make(chan struct{})
	var once sync.Once
	done := make(chan error, 1)
	d := bench.New(rnd.Uint64(), time.Now())
	go func() {
		_, err := load.Run(ctx, load.Options{Target: target, Connections: 2, InFlight: 4, Acked: func(r bench.Request) {
			l.note(t, r.Body, true)
			once.Do(func() { close(first) })
		}}, func(yield func(bench.Request) bool) {
			for r := range d.Requests(15_000, 20+rnd.IntN(100)) {
				l.note(t, r.Body, false)
				if !yield(r) {
					return
				}
			}
		})
		done <- err
	}()
	select {
	case <-first:
	case <-ctx.Done():
		t.Fatal(fmt.Errorf("nothing was acknowledged: %w", ctx.Err()))
	}
	time.Sleep(time.Duration(rnd.IntN(400)) * time.Millisecond) // the moment of the kill is what is random here
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.wait()
	cancel()
	<-done
}
