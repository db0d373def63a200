package canary

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// messages returns the lines' messages with their details.
func messages(logs []observer.LoggedEntry) string {
	var b strings.Builder
	for _, l := range logs {
		fmt.Fprintln(&b, l.Level, l.Message, l.ContextMap()["how"], l.ContextMap()["detail"], l.ContextMap()["error"])
	}
	return b.String()
}

// onlyReads returns a matrix of results from the results of each API.
func onlyReads(id, search map[Result]int) (out [ways][results]int) {
	for r := range results {
		out[byID][r], out[bySearch][r] = id[r], search[r]
	}
	return out
}

func TestEverythingIsReadAtEveryAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(t)
		b.tenant = "team"
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute+time.Second/2)
		defer cancel()
		s, logs, reg := b.run(ctx, Options{
			Interval: time.Second, Ages: []time.Duration{time.Second, 10 * time.Second, time.Minute},
			Header: http.Header{tenantHeader: {"team"}},
		})
		const reads = 179 + 170 + 120 // without readings of the last second, ten seconds and minute
		want := onlyReads(map[Result]int{OK: reads}, map[Result]int{OK: reads})
		if s.Written != 180 || s.Reads != want || s.Proven() != nil || len(logs) != 0 {
			t.Errorf("got %s\n%s", &s, messages(logs))
		}
		if metric(t, reg, "traces_written") != 180 || metric(t, reg, "reads", "search", "ok") != reads ||
			metric(t, reg, "read_latency", "id") == 0 || metric(t, reg, "write_latency") == 0 || metric(t, reg, "traces_forgotten") != 0 {
			t.Error("metrics do not say what happened")
		}
	})
}

// once returns options of a run that ends by itself.
func once(traces int, ages ...time.Duration) Options {
	if ages == nil {
		ages = []time.Duration{time.Second}
	}
	return Options{Interval: 10 * time.Millisecond, Traces: traces, Ages: ages}
}

func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s, _, _ := newBackend(t).run(t.Context(), once(20))
		want := Summary{Written: 20, Reads: onlyReads(map[Result]int{OK: 20}, map[Result]int{OK: 20})}
		if s != want || time.Since(began) > 2*time.Second {
			t.Errorf("got %s", &s)
		}
		if got := s.String(); got != "20 traces written, 0 not acknowledged\nreadings: 40 ok, 0 late, 0 missing, 0 wrong, 0 error" {
			t.Errorf("got %q", got)
		}
	})
}

func TestDurationEndsWithReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s, _, _ := newBackend(t).run(t.Context(), Options{
			Interval: time.Second, Duration: 10 * time.Second, Ages: []time.Duration{5 * time.Second, time.Hour}})
		if took := time.Since(began); s.Written != 10 || s.count(OK) != 20 || took != 15*time.Second {
			t.Errorf("got %s after %s", &s, took)
		}
		began = time.Now() // no interval fits
		s, _, _ = newBackend(t).run(t.Context(), Options{Interval: time.Hour + 1, Duration: time.Second, Ages: []time.Duration{0}})
		if s.Written != 0 || time.Since(began) > time.Second {
			t.Errorf("got %s after %s", &s, time.Since(began))
		}
	})
}

// A trace is read in both ways, and each result is judged separately.
func TestResults(t *testing.T) {
	f := func(ages int, id, search map[Result]int, log string, change func(n int, search bool, status int, body string) (int, string)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			t.Helper()
			b := newBackend(t)
			b.change = func(n int, r *http.Request, status int, body string) (int, string) {
				return change((n-1)/int(ways), r.URL.Query().Has("tags"), status, body)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			all := []time.Duration{time.Second, time.Minute, 2 * time.Minute}[:ages]
			s, logs, reg := b.run(ctx, Options{Interval: time.Hour - time.Minute, Ages: all})
			if want := onlyReads(id, search); s.Written != 1 || s.Reads != want {
				t.Errorf("got %v, want %v", s.Reads, want)
			}
			if got := messages(logs); !strings.Contains(got, log) {
				t.Errorf("log is %q, want %q", got, log)
			}
			bad := id[Missing] + search[Missing] + id[Wrong] + search[Wrong]
			if (s.Lost() != nil) != (bad > 0) || (s.Proven() != nil) != (bad+id[Failed]+search[Failed] > 0) {
				t.Errorf("%v, %v after %v", s.Lost(), s.Proven(), s.Reads)
			}
			if metric(t, reg, "remembered_traces") != 0 || metric(t, reg, "reads", "id", "missing") != float64(id[Missing]) {
				t.Error("metrics do not say what happened")
			}
		})
	}
	ok := map[Result]int{OK: 1}
	f(1, ok, map[Result]int{Missing: 1}, "error canary trace differs from the written trace search trace not found",
		func(_ int, search bool, status int, body string) (int, string) {
			if search {
				return 200, `{"data":[],"errors":null}`
			}
			return status, body
		})
	f(3, map[Result]int{Missing: 1, Late: 1, OK: 1}, map[Result]int{OK: 3}, "info canary trace appeared late id",
		func(n int, search bool, status int, body string) (int, string) {
			if n == 0 && !search {
				return 404, `{"data":null,"errors":[{"code":404,"msg":"trace not found"}]}`
			}
			return status, body
		})
	f(1, map[Result]int{Wrong: 1}, map[Result]int{Wrong: 1}, "got bool false, want bool true",
		func(_ int, _ bool, status int, body string) (int, string) {
			return status, strings.Replace(body, `"type":"bool","value":true`, `"type":"bool","value":false`, -1)
		})
	f(2, map[Result]int{Failed: 1, OK: 1}, map[Result]int{Failed: 1, OK: 1}, "warn cannot read canary trace id status 503: busy",
		func(n int, _ bool, status int, body string) (int, string) {
			if n == 0 {
				return 503, "busy\n"
			}
			return status, body
		})
	f(1, map[Result]int{Failed: 1}, map[Result]int{Failed: 1}, "status 404: 404 page not found", // another server
		func(int, bool, int, string) (int, string) { return 404, "404 page not found" })
	f(1, map[Result]int{Failed: 1}, map[Result]int{Failed: 1}, "status 200: result is incomplete: timeout",
		func(int, bool, int, string) (int, string) {
			return 200, `{"data":[],"errors":[{"msg":"result is incomplete: timeout"}]}`
		})
	f(1, map[Result]int{Failed: 1}, map[Result]int{Failed: 1}, "reading response",
		func(int, bool, int, string) (int, string) { return 200, "<html>" })
	f(1, map[Result]int{Failed: 1}, map[Result]int{Failed: 1}, errTooLong.Error(),
		func(int, bool, int, string) (int, string) { return 200, strings.Repeat(" ", maxAnswer+1) })
}

// A trace that was not acknowledged is not read; one of the two acknowledged ones is not stored.
func TestWriteFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(t)
		// The third answer rejects 3 spans, the fourth none, the last two are no messages.
		refusals := []string{"", "slow down", "\x0a\x02\x08\x03", "\x0a\x00", "\xff", "\x0a\x01\xff"}
		b.refuse = func(n int) (int, string) {
			return []int{0, 503, 200, 200, 200, 200}[n-1], refusals[n-1]
		}
		s, logs, reg := b.run(t.Context(), once(6))
		if s.Written != 2 || s.WriteFailures != 4 || s.count(OK) != 2 || s.count(Missing) != 2 {
			t.Errorf("got %s", &s)
		}
		got := messages(logs)
		for _, want := range []string{"status 503: slow down", "3 spans were rejected", "response is not an ExportTraceServiceResponse"} {
			if !strings.Contains(got, want) {
				t.Errorf("no line says %q:\n%s", want, got)
			}
		}
		if metric(t, reg, "write_failures") != 4 {
			t.Error("metrics do not say what happened")
		}
	})
}

// Memory is bounded: the oldest traces are dropped and counted, and new ones are read.
func TestRemembersSoMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute+time.Second/2) // between two readings
		defer cancel()
		b := newBackend(t)
		s, _, reg := b.run(ctx, Options{Interval: time.Second, Remember: 100, Ages: []time.Duration{time.Second, 3 * time.Minute}})
		if got := metric(t, reg, "remembered_traces"); got != 100 {
			t.Errorf("%v are remembered", got)
		}
		if first := s.Reads[byID][OK]; first < s.Written-2 || metric(t, reg, "traces_forgotten") < float64(s.Written)-200 {
			t.Errorf("%s; %v were forgotten", &s, metric(t, reg, "traces_forgotten"))
		}
	})
}

func TestGaugesOfAge(t *testing.T) {
	m := newMemory([]time.Duration{time.Second, time.Minute}, 10)
	at := func(s int) time.Time { return someTime.Add(time.Duration(s) * time.Second) }
	if m.behind(at(5)) != 0 || m.oldestMissing(at(5)) != 0 {
		t.Error("nothing is remembered")
	}
	m.addTrace(remembered{acked: at(0)}, 1)
	m.addTrace(remembered{acked: at(10), missed: [ways]bool{false, true}}, 1)
	m.addTrace(remembered{acked: at(20), missed: [ways]bool{true, true}}, 1)
	m.addTrace(remembered{acked: at(40)}, 0)
	if got := m.behind(at(40)); got != 0 {
		t.Errorf("%s behind before anything is due", got)
	}
	if got := m.behind(at(44)); got != 3*time.Second {
		t.Errorf("%s behind", got)
	}
	if got := m.oldestMissing(at(44)); got != 34*time.Second {
		t.Errorf("the oldest missing is %s old", got)
	}
	var order []time.Time
	for range 4 {
		r, _, wait := m.takeDue(at(100))
		order = append(order, r.acked)
		if wait != 0 {
			t.Errorf("wait %s", wait)
		}
	}
	if want := []time.Time{at(40), at(0), at(10), at(20)}; !slices.Equal(order, want) {
		t.Errorf("got %v", order)
	}
	if _, age, wait := m.takeDue(at(100)); age != -1 || wait >= 0 {
		t.Errorf("age %d, wait %s", age, wait)
	}
}

// After the clock is set back, no trace is written a second time.
func TestClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(t)
		began := time.Now()
		o := Options{OTLP: "http://in", Query: "http://out", Interval: time.Second, Traces: 20, Ages: []time.Duration{0}, Remember: 100}
		c, err := New(o,
			Outside{Now: func() time.Time {
				if now := time.Now(); now.Sub(began) < 10*time.Second {
					return now
				}
				return time.Now().Add(-5 * time.Second)
			}, Transport: b, Logger: zap.NewNop(), Metrics: prometheus.NewRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		if s := c.Run(t.Context()); s.Written != 20 || len(b.answer) != 20 || s.Proven() != nil {
			t.Errorf("%d different traces; %s", len(b.answer), &s)
		}
	})
}
