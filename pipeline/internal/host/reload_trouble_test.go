package host_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// The report of a component is removed with the component.
func TestReloadForgetsReports(t *testing.T) {
	w := hosttest.NewWorld()
	p := w.Start(t, hosttest.Small)
	before := w.Settings["sink"].Report
	before(errors.New("the next hop is away"))
	if err := become(t, w, p, strings.ReplaceAll(hosttest.Small, "sink: ", "sink: {max_traces: 1}")); err != nil {
		t.Fatal(err)
	}
	before(errors.New("still away"))
	if s := p.Status(); s.State != status.OK {
		t.Errorf("%+v", s)
	}
}

const twoSinks = "receivers: {source: }\nexporters: {sink: , sink/2: }\nextensions: {hub: }\n" +
	"service: {extensions: [hub], pipelines: {traces: {receivers: [source], exporters: [sink]}}}\n"

// If neither the new nor the previous configuration can be started, the process is not ready,
// callers are refused immediately, and Stop stops all components that run.
func TestReloadThatBreaks(t *testing.T) {
	for name, fails := range map[string][]string{"exporters": {"start sink", "start sink/2"}, "receiver": {"start source"},
		"build": {"start sink/2", "build sink"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := hosttest.NewWorld()
				p := w.Start(t, twoSinks)
				for _, event := range fails {
					w.Fail[event] = errors.New(event + " failed")
				}
				next := strings.NewReplacer("exporters: [sink]", "exporters: [sink/2]", "source: }", `source: {endpoint: "localhost:7"}}`).Replace(twoSinks)
				if name != "receiver" {
					next = strings.ReplaceAll(twoSinks, "exporters: [sink]", "exporters: [sink/2]")
				}
				source := w.Source["source"]
				err := become(t, w, p, next)
				if err == nil || !strings.Contains(err.Error(), "previous configuration could not be restored") || p.Health().Ready {
					t.Fatalf("ready %v, %v", p.Health().Ready, err)
				}
				if s := p.Status(); s.State == status.OK || s.Configuration.Problem != err.Error() {
					t.Errorf("%+v", s)
				}
				clear(w.Fail)
				began := time.Now()
				if err := source.Consume(t.Context(), hosttest.OneSpan("a")); !errors.Is(err, pipeline.ErrStopping) || time.Since(began) > 0 {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
				running := map[string]int{}
				for _, event := range w.Events {
					switch verb, id, _ := strings.Cut(event, " "); verb {
					case "start":
						running[id]++
					case "stop":
						running[id]--
					}
				}
				for _, event := range fails {
					running[strings.TrimPrefix(event, "start ")] = 0
				}
				w.Events = nil
				if err := p.End(); err != nil {
					t.Error(err)
				}
				for id, n := range running {
					if n > 0 && !slices.Contains(w.Events, "stop "+id) {
						t.Errorf("%s is not stopped: %v", id, w.Events)
					}
				}
			})
		})
	}
}

// Each component has the full stop timeout, even if another one used all of it.
func TestReloadGivesEachItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hosttest.NewWorld()
		p := w.Start(t, hosttest.Small)
		stops := 0
		w.OnStop = func(ctx context.Context) {
			if stops++; stops == 1 {
				<-ctx.Done()
			}
			if ctx.Err() != nil && stops == 2 {
				t.Error("the store is stopped with a context that has ended")
			}
		}
		next := strings.NewReplacer("sink: ", "sink: {max_traces: 1}", "source: }", `source: {endpoint: "localhost:7"}}`).Replace(hosttest.Small)
		if err := become(t, w, p, next); err != nil || stops != 2 {
			t.Errorf("%d components were stopped: %v", stops, err)
		}
		w.OnStop = nil
	})
}

// Callers that wait for a retry of an exporter that the reload does not affect keep waiting.
func TestReloadLeavesOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, away := hosttest.NewWorld(), hosttest.NewNextHop(true)
		factories := append(w.Factories(), pipeline.Exporter("net",
			func() hosttest.NetConfig { return hosttest.NetConfig{Delivery: pipeline.DefaultDelivery()} },
			func(pipeline.Settings, hosttest.NetConfig) (*hosttest.Net, error) {
				return &hosttest.Net{Send: away.Send}, nil
			}))
		const yaml = "receivers: {source: , source/2: }\nprocessors: {step: }\n" +
			"exporters: {hop: , net: {retry_on_failure: {initial_interval: 1m, max_interval: 1m}}}\n" +
			"service: {limits: {max_wait: 0}, pipelines: {traces: {receivers: [source], exporters: [hop]}, " +
			"traces/2: {receivers: [source/2], exporters: [net]}}}\n"
		p := w.StartWith(t, factories, yaml)
		w.Accept = func(string, *otlpdata.Batch) error {
			time.Sleep(3 * time.Second)
			return nil
		}
		outcomes := make(chan error, 2)
		go func() { outcomes <- w.Source["source/2"].Consume(t.Context(), hosttest.OneSpan("a")) }()
		go func() { outcomes <- w.Source["source"].Consume(t.Context(), hosttest.OneSpan("b")) }()
		synctest.Wait()
		err := p.Reload(t.Context(), func() (*app.Config, error) {
			return w.LoadWith(factories, strings.ReplaceAll(yaml, "[source],", "[source], processors: [step],"))
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-outcomes; err != nil || len(outcomes) > 0 {
			t.Errorf("%v, %d other callers were answered", err, len(outcomes))
		}
		away.SetAway(false)
		if err := <-outcomes; err != nil {
			t.Error(err)
		}
	})
}

// A reload that fails because of the settings of self-tracing keeps nothing of what it built.
func TestReloadForgetsWhatItBuilt(t *testing.T) {
	var built []weak.Pointer[hosttest.Net]
	w := hosttest.NewWorld()
	factories := append(w.Factories(), pipeline.Exporter("net",
		func() hosttest.NetConfig { return hosttest.NetConfig{Delivery: pipeline.DefaultDelivery()} },
		func(set pipeline.Settings, _ hosttest.NetConfig) (*hosttest.Net, error) {
			net := &hosttest.Net{Send: hosttest.NewNextHop(false).Send}
			built = append(built, weak.Make(net))
			return net, set.Metrics.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "net"}, func() float64 {
				runtime.KeepAlive(net)
				return 0
			}))
		}))
	p := w.StartWith(t, factories, hosttest.Small)
	const traces = "service: {telemetry: {traces: {processors: [{simple: {exporter: {otlp: " +
		"{protocol: grpc, endpoint: 'https://localhost:1', certificate: /missing}}}}]}}, "
	next := strings.NewReplacer("exporters: {", "exporters: {net: , ", "exporters: [", "exporters: [net, ",
		"service: {", traces).Replace(hosttest.Small)
	err := p.Reload(t.Context(), func() (*app.Config, error) { return w.LoadWith(factories, next) })
	if err == nil || !strings.Contains(err.Error(), "certificate: open /missing") || len(built) != 1 {
		t.Fatalf("built %d exporters: %v", len(built), err)
	}
	runtime.GC()
	if built[0].Value() != nil {
		t.Error("exporter of the refused configuration is still in memory")
	}
}
