package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// hops runs source -> net, where net sends to the next hop that its configuration names.
type hops struct {
	*hosttest.Program
	w    *hosttest.World
	fs   vfs.FS
	to   map[string]*hosttest.NextHop
	from pipeline.Consumer
}

type namedHopConfig struct {
	pipeline.Delivery
	To string `yaml:"to" doc:"Where to send."`
}

func (h *hops) load(settings, processors string) (*app.Config, error) {
	factories := append(h.w.Factories(), pipeline.Exporter("net",
		func() namedHopConfig { return namedHopConfig{Delivery: pipeline.DefaultDelivery()} },
		func(_ pipeline.Settings, c namedHopConfig) (*hosttest.Net, error) {
			return &hosttest.Net{Send: h.to[c.To].Send}, nil
		}))
	exporter := "net"
	if settings == "" {
		exporter = "sink"
	}
	return h.w.LoadWith(factories, fmt.Sprintf("receivers: {source: }\nprocessors: {step: }\nexporters: {sink: , net: {%s}}\n"+
		"service: {data_dir: data, pipelines: {traces: {receivers: [source], processors: [%s], exporters: [%s]}}}\n",
		settings, processors, exporter))
}

func startHops(t *testing.T, settings string, to map[string]*hosttest.NextHop) *hops {
	t.Helper()
	h := &hops{w: hosttest.NewWorld(), fs: vfstest.NewMem(), to: to}
	config, err := h.load(settings, "")
	if err != nil {
		t.Fatal(err)
	}
	env := pipeline.SystemEnv()
	env.FS = h.fs
	h.Program = hosttest.NewProgram(t, config, env)
	h.StartWithin(t, time.Minute)
	h.from = h.w.Source["source"]
	return h
}

func (h *hops) become(t *testing.T, settings, processors string) {
	t.Helper()
	if err := h.Reload(t.Context(), func() (*app.Config, error) { return h.load(settings, processors) }); err != nil {
		t.Fatal(err)
	}
}

func (h *hops) send(t *testing.T, service string) {
	t.Helper()
	if err := h.from.Consume(t.Context(), hosttest.BatchFor("", service)); err != nil {
		t.Fatal(err)
	}
}

const (
	fast     = "retry_on_failure: {initial_interval: 10ms, max_interval: 10ms, max_elapsed_time: 0s}"
	inMemory = fast + ", sending_queue: "
)

// An exporter with changed settings keeps its queue with all batches, in memory and on disk.
func TestReloadKeepsTheQueue(t *testing.T) {
	for name, queue := range map[string]string{"memory": inMemory, "disk": fast + ", sending_queue: {storage: disk}"} {
		t.Run(name, func(t *testing.T) {
			away, there := hosttest.NewNextHop(true), hosttest.NewNextHop(false)
			h := startHops(t, "to: away, "+queue, map[string]*hosttest.NextHop{"away": away, "there": there})
			h.send(t, "a")
			h.send(t, "b")
			h.become(t, "to: there, timeout: 3s, "+queue, "step")
			h.send(t, "c")
			if got := fmt.Sprint(there.Await(3)); got != "[ zipkin udp a  zipkin udp b  zipkin udp c]" {
				t.Errorf("got %s", got)
			}
			if err := h.End(); err != nil {
				t.Fatal(err)
			}
			h.Program.CheckNet(t, "dropped:0 in:3 queued:0 sent:3")
			h.CheckBalanced(t)
		})
	}
}

// Batches in memory are sent by the previous exporter if the settings of the queue change or the
// exporter is removed.
func TestReloadRetiresTheQueue(t *testing.T) {
	for name, next := range map[string]string{"other queue": "to: there, " + fast + ", sending_queue: {queue_size: 7}",
		"no queue": "to: there, " + fast,
		"on disk":  "to: there, " + fast + ", sending_queue: {storage: disk}", "no exporter": ""} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before, there := hosttest.NewNextHop(true), hosttest.NewNextHop(false)
				h := startHops(t, "to: before, "+inMemory, map[string]*hosttest.NextHop{"before": before, "there": there})
				h.send(t, "a")
				h.become(t, next, "")
				if got := h.NetCounts(t)["queued"]; got != 1 {
					t.Errorf("%v spans queued, want 1", got)
				}
				h.send(t, "b")
				synctest.Wait()
				before.SetAway(false)
				time.Sleep(time.Second)
				if got := fmt.Sprint(before.Await(1)); got != "[ zipkin udp a]" {
					t.Errorf("got %s", got)
				}
				if next != "" {
					there.Await(1)
				}
				if err := h.End(); err != nil {
					t.Fatal(err)
				}
				h.CheckBalanced(t)
			})
		})
	}
}

// If the process stops before a removed exporter has sent all batches, the rest is counted as
// dropped.
func TestStopEndsRetirement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startHops(t, "to: away, "+inMemory, map[string]*hosttest.NextHop{"away": hosttest.NewNextHop(true),
			"there": hosttest.NewNextHop(false)})
		h.send(t, "a")
		h.become(t, "to: there", "")
		if err := h.End(); err != nil {
			t.Fatal(err)
		}
		h.Program.CheckNet(t, "in:1 dropped:1")
		h.CheckBalanced(t)
		if len(h.Lines(t, "a removed component did not stop cleanly")) != 1 {
			t.Errorf("not logged: %s", h.Log)
		}
	})
}

// A queue on disk with changed settings is reopened, and its batches are counted once. A
// removed queue keeps its batches until it is configured again.
func TestReloadOfQueueOnDisk(t *testing.T) {
	const onDisk = fast + ", sending_queue: {storage: disk, max_bytes: %s}"
	away, there := hosttest.NewNextHop(true), hosttest.NewNextHop(false)
	h := startHops(t, "to: away, "+fmt.Sprintf(onDisk, "1MiB"), map[string]*hosttest.NextHop{"away": away, "there": there})
	h.send(t, "a")
	h.become(t, "to: away, "+fmt.Sprintf(onDisk, "2MiB"), "")
	h.Program.CheckNet(t, "in:1 queued:1")
	h.send(t, "b")
	h.become(t, "", "")
	h.Program.CheckNet(t, "in:2 queued:2")
	h.become(t, "to: there, "+fmt.Sprintf(onDisk, "2MiB"), "")
	there.Await(2)
	if err := h.End(); err != nil {
		t.Fatal(err)
	}
	h.Program.CheckNet(t, "in:2 queued:0 sent:2")
	h.CheckBalanced(t)
}

// A caller that waits for a retry does not delay the replacement of components before the exporter:
// it gets the error of the last attempt.
func TestReloadHurries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = "to: away, retry_on_failure: {initial_interval: 1h, max_interval: 1h, max_elapsed_time: 0s}"
		h := startHops(t, slow, map[string]*hosttest.NextHop{"away": hosttest.NewNextHop(true)})
		outcome := make(chan error)
		go func() { outcome <- h.from.Consume(context.Background(), hosttest.OneSpan("a")) }()
		synctest.Wait()
		began := time.Now()
		h.become(t, slow, "step")
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
		if err := <-outcome; err == nil || pipeline.IsPermanent(err) {
			t.Errorf("got %v", err)
		}
	})
}

// Under load, a hundred reloads lose no acknowledged batch.
func TestReloadUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := hosttest.NewNextHop(false), hosttest.NewNextHop(false)
		h := startHops(t, "to: a, "+inMemory, map[string]*hosttest.NextHop{"a": a, "b": b})
		var load sync.WaitGroup
		ctx, cancel := context.WithCancel(context.Background())
		var mu sync.Mutex
		acked := 0
		for i := range 8 {
			load.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					err := h.from.Consume(context.Background(), hosttest.BatchFor("", fmt.Sprint(i, n)))
					mu.Lock()
					if err == nil {
						acked++
					} else if !errors.Is(err, pipeline.ErrStopping) {
						t.Error(err)
					}
					mu.Unlock()
					time.Sleep(time.Duration(1+i) * time.Millisecond)
				}
			})
		}
		for i := range 100 {
			settings := fmt.Sprintf("to: %s, timeout: %dms, %s", []string{"a", "b"}[i%2], 100+i%3, []string{inMemory, fast,
				fast + ", sending_queue: {storage: disk}", inMemory + "{num_consumers: 3}"}[i/2%4])
			h.become(t, settings, []string{"", "step"}[i/3%2])
			time.Sleep(7 * time.Millisecond)
		}
		cancel()
		load.Wait()
		h.become(t, "to: a, "+fast+", sending_queue: {storage: disk}", "") // sends what was left on disk
		time.Sleep(time.Second)
		if err := h.End(); err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, s := range append(a.Await(0), b.Await(0)...) {
			got[strings.TrimSpace(s)] = true
		}
		if len(got) < acked || acked < 100 {
			t.Errorf("%d of %d acknowledged batches arrived", len(got), acked)
		}
		h.CheckBalanced(t)
		if s := h.Status().Configuration; s.Reloads != 101 || s.Problem != "" {
			t.Errorf("status %+v", s)
		}
	})
}
