package app_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// nextHop is a destination that can be away, and remembers whose spans it got.
type nextHop struct {
	mu   sync.Mutex
	away bool
	got  []string
	some *sync.Cond
}

func newNextHop(away bool) *nextHop {
	h := &nextHop{away: away}
	h.some = sync.NewCond(&h.mu)
	return h
}

func (h *nextHop) send(_ context.Context, b *otlpdata.Batch) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.away {
		return errors.New("nobody is there")
	}
	m := b.Meta()
	h.got = append(h.got, fmt.Sprint(m.Tenant, " ", m.Format, " ", m.Transport, " ", b.Services()[0].Service))
	h.some.Broadcast()
	return nil
}

// await returns what came when it is n batches, sorted.
func (h *nextHop) await(n int) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.got) < n {
		h.some.Wait()
	}
	return slices.Sorted(slices.Values(h.got))
}

// expectCounts checks some of what was counted, written `in:1 sent:1`.
func expectCounts(t *testing.T, p *program, want string) {
	t.Helper()
	got := p.counted(t)
	for _, w := range strings.Fields(want) {
		name, n, _ := strings.Cut(w, ":")
		if fmt.Sprint(got[name]) != n {
			t.Errorf("counted %v, want %s", got, want)
			return
		}
	}
}

const onDisk = "retry_on_failure: {initial_interval: 10ms, max_interval: 10ms}, sending_queue: {storage: disk, num_consumers: 2}"

// startOnDisk is startNet on a file system.
func startOnDisk(t *testing.T, fsys vfs.FS, settings string, h *nextHop) (*program, pipeline.Consumer) {
	t.Helper()
	return startNetOn(t, fsys, settings, "data_dir: data", h.send)
}

func batchFor(tenant, service string) *otlpdata.Batch {
	var request otlpdata.Builder
	request.Resource([]otlpdata.KeyValue{{Key: "service.name", Value: otlpdata.StringValue(service)}})
	request.Span(&otlpdata.Span{Name: "op"})
	b, err := otlpdata.FromOTLP(request.Bytes(), otlpdata.Meta{Tenant: tenant, Format: "zipkin", Transport: "udp", Received: time.Unix(1, 0)}, otlpdata.Limits{})
	if err != nil {
		panic(err)
	}
	return b
}

// What was acknowledged is sent, with all that is known of it, by the next process: whether the first one was stopped, killed, or lost power.
func TestQueueOnDiskSurvives(t *testing.T) {
	for name, end := range map[string]func(*vfstest.Mem, *program) (*vfstest.Mem, error){
		"stop": func(m *vfstest.Mem, p *program) (*vfstest.Mem, error) { return m, p.stop() },
		"kill": func(m *vfstest.Mem, _ *program) (*vfstest.Mem, error) { return m.Kill(), nil },
		"power cut": func(m *vfstest.Mem, _ *program) (*vfstest.Mem, error) {
			return m.Crash(rand.New(rand.NewPCG(1, 2))), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfstest.NewMem()
			p, source := startOnDisk(t, mem, onDisk, newNextHop(true))
			var want []string
			for i := range 50 {
				if err := source.Consume(t.Context(), batchFor(fmt.Sprint("t", i%3), fmt.Sprint("s", i))); err != nil {
					t.Fatal(err)
				}
				want = append(want, fmt.Sprint("t", i%3, " zipkin udp s", i))
			}
			slices.Sort(want)
			expectCounts(t, p, "dropped:0 in:50 queued:50 sent:0")
			mem, err := end(mem, p)
			if err != nil {
				t.Fatal(err)
			}
			p.stop() //nolint:errcheck // the files are gone from under it, or it has stopped
			back := newNextHop(false)
			p, _ = startOnDisk(t, mem, onDisk, back)
			if got := back.await(50); !slices.Equal(got, want) {
				t.Errorf("got %q", got)
			}
			if err := p.stop(); err != nil {
				t.Error(err)
			}
			expectCounts(t, p, "dropped:0 in:50 queued:0 sent:50")
			if !strings.Contains(p.log.String(), `"balanced":true`) || !strings.Contains(p.log.String(), `"net: on disk"`) {
				t.Errorf("log: %s", p.log)
			}
		})
	}
}

// A full disk refuses what cannot be promised, and is no reason to forget what was.
func TestQueueOnFullDisk(t *testing.T) {
	full := &vfstest.Rule{Op: vfstest.OpWrite | vfstest.OpCreate, Err: vfstest.ErrNoSpace}
	full.Switch(false)
	mem := vfstest.NewMem()
	h := newNextHop(true)
	p, source := startOnDisk(t, vfstest.Inject(mem, full), onDisk, h)
	if err := source.Consume(t.Context(), batchFor("", "before")); err != nil {
		t.Fatal(err)
	}
	full.Switch(true)
	err := source.Consume(t.Context(), batchFor("", "during"))
	if code, after := pipeline.HTTPStatus(err); code != 503 || after == 0 {
		t.Errorf("%v: status %d, retry after %s", err, code, after)
	}
	full.Switch(false)
	if err := source.Consume(t.Context(), batchFor("", "after")); err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	h.away = false
	h.mu.Unlock()
	if got := h.await(2); !slices.Equal(got, []string{" zipkin udp after", " zipkin udp before"}) {
		t.Errorf("got %q", got)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	expectCounts(t, p, "in:3 queued:0 refused:1 sent:2")
}

// The newest spans stay, whether the queue is in memory or on disk.
func TestDropOldest(t *testing.T) {
	for _, storage := range []string{"", "storage: disk, "} {
		t.Run(storage, func(t *testing.T) {
			h := newNextHop(true)
			p, source := startOnDisk(t, vfstest.NewMem(),
				"retry_on_failure: {initial_interval: 10ms, max_interval: 10ms}, sending_queue: {"+storage+"num_consumers: 1, queue_size: 5, overflow: drop_oldest}", h)
			for i := range 20 {
				if err := source.Consume(t.Context(), batchFor("", fmt.Sprint("s", 10+i))); err != nil {
					t.Fatal(err)
				}
			}
			h.mu.Lock()
			h.away = false
			h.mu.Unlock()
			got := h.await(5)
			if !slices.Contains(got, " zipkin udp s29") || !slices.Contains(got, " zipkin udp s26") {
				t.Errorf("got %q", got)
			}
			if err := p.stop(); err != nil {
				t.Error(err)
			}
			expectCounts(t, p, "dropped:15 in:20 queued:0 sent:5")
			if n := bytes.Count(p.log.Bytes(), []byte(`"reason":"overflow"`)); n != 15 {
				t.Errorf("%d lines tell of dropped spans", n)
			}
		})
	}
}

// Two processes must not send the same queue.
func TestQueueOnDiskIsLocked(t *testing.T) {
	mem := vfstest.NewMem()
	startOnDisk(t, mem, onDisk, newNextHop(true))
	second, _ := newNet(t, mem, onDisk, "data_dir: data", newNextHop(true).send)
	err := second.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "sending_queue") || !strings.Contains(err.Error(), "is in use") {
		t.Errorf("got %v", err)
	}
}
