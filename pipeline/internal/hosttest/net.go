package hosttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// SendFunc is Consume of an exporter.
type SendFunc func(ctx context.Context, b *otlpdata.Batch) error

// Consume calls f.
func (f SendFunc) Consume(ctx context.Context, b *otlpdata.Batch) error { return f(ctx, b) }

// Net is the `net` exporter, which sends over a network.
type Net struct{ Send SendFunc }

// Consume calls Send.
func (n *Net) Consume(ctx context.Context, b *otlpdata.Batch) error { return n.Send(ctx, b) }

// NetConfig is the configuration of the `net` exporter.
type NetConfig struct {
	pipeline.Delivery
}

// StartNet runs source -> net, where settings are the keys of net. It returns what source calls.
func StartNet(t *testing.T, settings string, send SendFunc) (*Program, pipeline.Consumer) {
	t.Helper()
	return StartNetWith(t, settings, "dead_letter_dir: "+t.TempDir(), send)
}

// StartNetWith is like StartNet with keys of the service section.
func StartNetWith(t *testing.T, settings, service string, send SendFunc) (*Program, pipeline.Consumer) {
	t.Helper()
	return StartNetOn(t, vfs.OS(), settings, service, send)
}

// StartNetOn is like StartNetWith with a file system.
func StartNetOn(t *testing.T, fsys vfs.FS, settings, service string, send SendFunc) (*Program, pipeline.Consumer) {
	t.Helper()
	p, source := NewNet(t, fsys, settings, service, send)
	p.StartWithin(t, 30*time.Second)
	return p, source
}

// NewNet is like StartNetOn but does not start the program. Callers wait without limit, unless
// service has limits.
func NewNet(t *testing.T, fsys vfs.FS, settings, service string, send SendFunc) (*Program, pipeline.Consumer) {
	t.Helper()
	if !strings.Contains(service, "limits:") {
		service += "\n  limits: {max_wait: 0}"
	}
	w := NewWorld()
	factories := append(w.Factories(), pipeline.Exporter("net", func() NetConfig { return NetConfig{pipeline.DefaultDelivery()} },
		func(pipeline.Settings, NetConfig) (*Net, error) { return &Net{send}, nil }))
	config, err := w.LoadWith(factories, "receivers: {source: }\nexporters:\n  net: {"+settings+"}\nservice:\n  "+service+
		"\n  pipelines: {traces: {receivers: [source], exporters: [net]}}\n")
	if err != nil {
		t.Fatal(err)
	}
	env := pipeline.SystemEnv()
	env.FS = fsys
	env.Rand = func() uint64 { return 1 << 19 } // no jitter
	return NewProgram(t, config, env), w.Source["source"]
}

// OnDisk are settings of net: fast retries and a queue on disk.
const OnDisk = "retry_on_failure: {initial_interval: 10ms, max_interval: 10ms}, sending_queue: {storage: disk, num_consumers: 2}"

// StartOnDisk runs source -> next hop with files below the folder data of a file system.
func StartOnDisk(t *testing.T, fsys vfs.FS, settings string, h *NextHop) (*Program, pipeline.Consumer) {
	t.Helper()
	return StartNetOn(t, fsys, settings, "data_dir: data", h.Send)
}

// NextHop is a destination that can be unavailable. It records the batches that it received.
type NextHop struct {
	mu       sync.Mutex
	away     bool
	got      []string
	received *sync.Cond
}

// NewNextHop returns a NextHop.
func NewNextHop(away bool) *NextHop {
	h := &NextHop{away: away}
	h.received = sync.NewCond(&h.mu)
	return h
}

// SetAway makes later calls of Send fail, or succeed.
func (h *NextHop) SetAway(away bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.away = away
}

// Send records tenant, format, transport and service of a batch.
func (h *NextHop) Send(_ context.Context, b *otlpdata.Batch) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.away {
		return errors.New("next hop is away")
	}
	m := b.Meta()
	h.got = append(h.got, fmt.Sprint(m.Tenant, " ", m.Format, " ", m.Transport, " ", b.Services()[0].Service))
	h.received.Broadcast()
	return nil
}

// Await waits for n batches and returns all that were received, sorted.
func (h *NextHop) Await(n int) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.got) < n {
		h.received.Wait()
	}
	return slices.Sorted(slices.Values(h.got))
}
