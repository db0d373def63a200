package tailsampling_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
)

const keepPolicy = "policies: [{name: keep, type: boolean_attribute, boolean_attribute: {key: keep, value: true}}]"

// send is p.send for spans that must be accepted.
func mustSend(t *testing.T, p *program, tenant string, trace, spans int, keep bool) {
	t.Helper()
	if err := p.send(t, tenant, trace, spans, keep); err != nil {
		t.Fatal(err)
	}
}

func TestEverySpanHasAnOutcome(t *testing.T) {
	for _, c := range []struct {
		name, settings string
		run            func(t *testing.T, p *program)
		want           string
	}{
		{"decisions", "decision_wait: 5s, " + keepPolicy, func(t *testing.T, p *program) {
			mustSend(t, p, "", 1, 3, true)
			mustSend(t, p, "", 2, 4, false)
			synctest.Wait()
			p.check(t, "in:7 held:7 sent:0")
			time.Sleep(8 * time.Second)
		}, "in:7 sent:3 dropped_policy:4 held:0 held_bytes:0"},
		{"late spans", "decision_wait: 5s, " + keepPolicy, func(t *testing.T, p *program) {
			for range 3 {
				mustSend(t, p, "", 1, 3, true)
				mustSend(t, p, "", 2, 4, false)
				time.Sleep(8 * time.Second)
			}
		}, "in:21 sent:9 dropped_policy:12 held:0 held_bytes:0"},
		{"late spans of cached decisions", "decision_wait: 5s, decision_cache: {sampled_cache_size: 10, non_sampled_cache_size: 10}, " +
			keepPolicy,
			func(t *testing.T, p *program) {
				for range 3 {
					mustSend(t, p, "", 1, 3, true)
					mustSend(t, p, "", 2, 4, false)
					time.Sleep(8 * time.Second)
				}
			}, "in:21 sent:9 dropped_policy:12 held:0 held_bytes:0"},
		{"late spans of dropped traces", "decision_wait: 5s, policies: [{name: drop, type: drop, drop: {drop_sub_policy: " +
			"[{name: all, type: always_sample}]}}]", func(t *testing.T, p *program) {
			for range 3 {
				mustSend(t, p, "", 1, 3, true)
				time.Sleep(8 * time.Second)
				synctest.Wait()
				p.check(t, "held:0")
			}
		}, "in:9 dropped_policy:9 held_bytes:0"},
		{"too many traces", "decision_wait: 5s, num_traces: 2, " + keepPolicy, func(t *testing.T, p *program) {
			for i := range 5 {
				mustSend(t, p, "", i, 2, true)
			}
			mustSend(t, p, "", 0, 1, true) // again, after it was evicted
			time.Sleep(30 * time.Second)
		}, "in:11 sent:3 dropped_evicted:8 held:0 held_bytes:0"},
		{"too large traces", "decision_wait: 5s, maximum_trace_size_bytes: 300, " + keepPolicy, func(t *testing.T, p *program) {
			mustSend(t, p, "", 1, 2, true)
			mustSend(t, p, "", 2, 2, true)
			for range 3 {
				mustSend(t, p, "", 1, 9, true)
			}
			time.Sleep(30 * time.Second)
		}, "in:31 sent:2 dropped_too_large:29 held:0 held_bytes:0"},
		{"decisions on arrival", "decision_wait: 5s, sampling_strategy: span-ingest, " + keepPolicy, func(t *testing.T, p *program) {
			mustSend(t, p, "", 1, 2, false)
			mustSend(t, p, "", 1, 2, true)
			mustSend(t, p, "", 2, 5, false)
			time.Sleep(30 * time.Second)
		}, "in:9 sent:4 dropped_policy:5 held:0 held_bytes:0"},
		{"shards", "decision_wait: 5s, num_shards: 4, " + keepPolicy, func(t *testing.T, p *program) {
			for i := range 40 {
				mustSend(t, p, "", i, 2, i%4 == 0)
			}
			time.Sleep(30 * time.Second)
		}, "in:80 sent:20 dropped_policy:60 held:0 held_bytes:0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, stop := start(t, "tail_sampling", c.settings, "")
				c.run(t, p)
				synctest.Wait()
				p.check(t, c.want)
				if err := stop(time.Minute); err != nil {
					t.Error(err)
				}
				p.check(t, c.want)
				p.checkBalanced(t)
			})
		})
	}
}

// TestStopDecides checks that a stop decides about all traces, or counts them as dropped.
func TestStopDecides(t *testing.T) {
	for name, c := range map[string]struct{ settings, want string }{
		"decides": {"decision_wait: 5s, " + keepPolicy, "in:7 sent:3 dropped_policy:4 held:0"},
		"evicts":  {"decision_wait: 5s, num_traces: 1, " + keepPolicy, "in:12 sent:3 dropped_policy:4 dropped_evicted:5 held:0"},
		"drops":   {"decision_wait: 5s, drop_pending_traces_on_shutdown: true, " + keepPolicy, "in:7 dropped_stopping:7 held:0"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, stop := start(t, "tail_sampling", c.settings, "")
				if name == "evicts" {
					mustSend(t, p, "", 3, 5, true)
				}
				mustSend(t, p, "a", 1, 3, true)
				mustSend(t, p, "", 2, 4, false)
				if err := stop(time.Minute); (err != nil) != (name == "drops") {
					t.Error(err)
				}
				p.check(t, c.want)
				p.checkBalanced(t)
			})
		})
	}
}

// TestTenantsAreSeparate sends equal trace ids of three tenants.
func TestTenantsAreSeparate(t *testing.T) {
	for processor, settings := range map[string]string{
		"tail_sampling": "decision_wait: 5s, " + keepPolicy, "groupbytrace": "wait_duration: 5s",
	} {
		t.Run(processor, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, stop := start(t, processor, settings, "held_tenants: 2")
				mustSend(t, p, "", 1, 1, false)
				mustSend(t, p, "a", 1, 2, true)
				mustSend(t, p, "b", 1, 4, false)
				if err := p.send(t, "c", 1, 1, true); err == nil || !strings.Contains(err.Error(), "service.limits.held_tenants is 2") {
					t.Errorf("third tenant: %v", err)
				}
				time.Sleep(8 * time.Second)
				synctest.Wait()
				want := map[traceKey]int{{"a", idOf(1)}: 2}
				if processor == "groupbytrace" {
					want[traceKey{"", idOf(1)}], want[traceKey{"b", idOf(1)}] = 1, 4
				}
				if fmt.Sprint(p.stored) != fmt.Sprint(want) {
					t.Errorf("stored %v, want %v", p.stored, want)
				}
				if m := p.batch[traceKey{"a", idOf(1)}]; m.Format != "zipkin" || m.Transport != "udp" {
					t.Errorf("origin %+v", m)
				}
				time.Sleep(time.Minute) // the instances of a and b end
				mustSend(t, p, "c", 1, 1, true)
				if err := stop(time.Minute); err != nil {
					t.Error(err)
				}
				p.checkBalanced(t)
			})
		})
	}
}

// TestHeldMemoryIsLimited checks that spans which do not fit are refused, and accepted again later.
func TestHeldMemoryIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stop := start(t, "tail_sampling", "decision_wait: 5s, "+keepPolicy, "held: 1MiB")
		var err error
		sent := 0
		for ; err == nil && sent < 10000; sent++ {
			err = p.send(t, "", sent, 1, true)
		}
		if !errors.Is(err, pipeline.ErrHeldMemory) || pipeline.IsPermanent(err) {
			t.Fatalf("after %d traces: %v", sent, err)
		}
		if got := p.counts(t)["held bytes"]; got > 1<<20 || got < 1<<19 {
			t.Errorf("%d bytes are held", got)
		}
		time.Sleep(10 * time.Second)
		mustSend(t, p, "", sent, 1, true)
		if err := stop(time.Minute); err != nil {
			t.Error(err)
		}
		p.check(t, fmt.Sprintf("in:%d sent:%d refused_over_budget:1", sent+1, sent))
		p.checkBalanced(t)
	})
}

// TestGroupedTracesLeave checks that a stop waits for groups, and that evicted ones are settled.
func TestGroupedTracesLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stop := start(t, "groupbytrace", "wait_duration: 5s, num_traces: 3", "")
		for i := range 5 {
			mustSend(t, p, "", i, 2, true)
		}
		synctest.Wait()
		p.check(t, "in:10 held:10")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		p.check(t, "in:10 sent:6 dropped_evicted:4 held:0 held_bytes:0")
		mustSend(t, p, "", 9, 1, true)
		if err := stop(time.Minute); err != nil {
			t.Error(err)
		}
		p.check(t, "sent:7")
		p.checkBalanced(t)
	})
	synctest.Test(t, func(t *testing.T) {
		p, stop := start(t, "groupbytrace", "wait_duration: 5m", "")
		mustSend(t, p, "", 1, 2, true)
		if err := stop(10 * time.Second); err == nil || !strings.Contains(err.Error(), "2 spans") {
			t.Errorf("stop: %v", err)
		}
		p.check(t, "in:2 dropped_stopping:2 held:0")
		p.checkBalanced(t)
	})
}

// TestRandomTrafficIsBalanced sends random spans of several tenants, with failures of the store and
// reloads, and checks that all are accounted for and that none has another tenant.
func TestRandomTrafficIsBalanced(t *testing.T) {
	seed := soak.Seed(t)
	for round := range soak.Rounds(t, 60, 12) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, uint64(round)))
			settings := func() (processor, settings string) {
				if r.IntN(4) == 0 {
					return "groupbytrace", fmt.Sprintf("wait_duration: %ds, num_traces: %d, num_workers: %d",
						1+r.IntN(5), 20+r.IntN(40), 1+r.IntN(2))
				}
				return "tail_sampling", fmt.Sprintf("decision_wait: %ds, num_traces: %d, num_shards: %d, maximum_trace_size_bytes: %d, "+
					"decision_cache: {sampled_cache_size: %d, non_sampled_cache_size: %d}, %s", 1+r.IntN(5), 5+r.IntN(40), 1+r.IntN(2),
					500*r.IntN(3), 10*r.IntN(2), 10*r.IntN(2), keepPolicy)
			}
			processor, s := settings()
			const limits = "held_retry: 3s, held_tenants: 2"
			p, stop := start(t, processor, s, limits)
			failures := rand.New(rand.NewPCG(seed, uint64(1000+round)))
			p.fail = func(*otlpdata.Batch) error { // not called concurrently
				switch failures.IntN(8) {
				case 0:
					return pipeline.Unavailable(errors.New("gone"), 0)
				case 1:
					return pipeline.Permanent(errors.New("bad"))
				case 2:
					return &pipeline.Partial{Rejected: 1}
				}
				return nil
			}
			for range 200 {
				switch r.IntN(40) {
				case 0:
					processor, s := settings()
					if err := p.Reload(t.Context(), func() (*app.Config, error) { return p.load(processor, s, limits) }); err != nil {
						t.Fatal(err)
					}
				case 1, 2, 3:
					time.Sleep(time.Duration(r.IntN(4000)) * time.Millisecond)
				default:
					tenant := []string{"", "a", "b", "c"}[r.IntN(4)]
					p.send(t, tenant, r.IntN(30), 1+r.IntN(9), r.IntN(3) == 0) //nolint:errcheck // some are refused
				}
			}
			stop(time.Duration(r.IntN(2)) * time.Minute) //nolint:errcheck // spans may be left, which is counted
			time.Sleep(time.Minute)                      // components that were not given time stop later
			p.check(t, "held:0 held_bytes:0")
			p.checkBalanced(t)
			if t.Failed() {
				t.Logf("round %d", round)
			}
		})
	}
}
