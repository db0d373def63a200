package disk

import (
	"context"
	"io"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/exporters/memory"
	"github.com/tracing-backend/tracing/internal/soak"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storetest"
)

// TestModel does random operations on stores, crashes included, and compares their answers with
// those of the memory store and of the suite's own model.
func TestModel(t *testing.T) {
	const machines = 4
	operations, first := soak.Rounds(t, 2000, 400), soak.Seed(t)
	for i := range uint64(machines) {
		t.Run(strconv.FormatUint(i, 10), func(t *testing.T) {
			t.Parallel()
			runModel(t, first+i, operations/machines)
		})
	}
}

func runModel(t *testing.T, seed uint64, operations int) {
	m := &machine{Model: storetest.NewModel(t, seed), t: t, mem: vfstest.NewMem(), clock: newClock(), counts: map[string]int{}}
	m.open()
	m.memory = openMemory(t)
	for range operations {
		m.step()
		if t.Failed() {
			t.Fatalf("after %v: %s=%d", m.counts, soak.SeedVariable, seed)
		}
	}
	m.CheckAll(m.store, m.memory)
	stopStore(t, m.store)
	t.Logf("%v", m.counts)
}

// machine is the store under test and what is known of it.
type machine struct {
	*storetest.Model
	t        *testing.T
	mem      *vfstest.Mem
	clock    *clock
	store    *exporter
	memory   storetest.Subject
	segments []batchesUntil // oldest first
	counts   map[string]int
	// lastWrite is when the last request came that is not in a segment.
	lastWrite time.Time
}

// batchesUntil is a segment: so many requests, the last of which came at a time.
type batchesUntil struct {
	requests int
	last     time.Time
}

const modelRetention = time.Hour

func (m *machine) open() {
	s := small(m.mem)
	s.clock = m.clock
	s.config.Retention.Time = pipeline.Duration(modelRetention)
	s.config.Memtable.MaxAge = pipeline.Duration(1000 * time.Hour) // only the model flushes
	s.config.Merge.MinSegments = 3
	m.store = s.start(m.t)
}

// holder is an extension that names a store, which is how one gets hold of another component.
type holder struct {
	Store pipeline.Ref[storetest.Subject] `yaml:"store" doc:"The store."`
}

func (h *holder) Start(context.Context) error { return nil }

// openMemory returns an empty memory store.
func openMemory(t *testing.T) storetest.Subject {
	t.Helper()
	var h *holder
	extension := pipeline.Extension("holder", func() holder { return holder{} }, func(_ pipeline.Settings, c holder) (*holder, error) {
		h = &c
		return h, nil
	})
	config, err := app.Load(app.LoadOptions{
		Factories: []pipeline.Factory{memory.Factory(), extension},
		Presets:   []app.Preset{{Name: "memory", YAML: []byte(memoryConfig)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := app.New(config, app.Options{Log: io.Discard}); err != nil {
		t.Fatal(err)
	}
	return h.Store.Get()
}

const memoryConfig = `
exporters: {memory: {max_bytes: 1GiB, allow_delete: true}}
extensions: {holder: {store: memory}}
service: {extensions: [holder]}
`

// step does one random operation.
func (m *machine) step() {
	name := "ask"
	switch p := m.Rand().IntN(1000); {
	case p < 600:
		name = "write"
		m.advance(time.Second)
		m.Write(m.store, m.memory)
		m.lastWrite = m.clock.now()
	case p < 630:
		name = "flush"
		m.flush()
	case p < 636:
		name = "merge"
		m.merge()
	case p < 642:
		name = "expire"
		m.expire()
	case p < 650:
		name = "crash"
		m.crash(m.mem.Crash)
	case p < 656:
		name = "kill"
		m.crash(func(*rand.Rand) *vfstest.Mem { return m.mem.Kill() })
	case p < 664:
		name = "reopen"
		m.reopen()
	case p < 676:
		name = "delete"
		m.delete()
	default:
		m.Check(m.store, m.memory)
	}
	m.counts[name]++
}

// unsealed returns how many requests are not in a segment.
func (m *machine) unsealed() int {
	n := m.Written()
	for _, s := range m.segments {
		n -= s.requests
	}
	return n
}

// seal notes that what was in memory is a segment now.
func (m *machine) seal(last time.Time) {
	if n := m.unsealed(); n > 0 {
		m.segments = append(m.segments, batchesUntil{n, last})
	}
}

func (m *machine) flush() {
	flushed(m.t, m.store)
	m.seal(m.lastWrite)
}

// merge merges what is due. The last span of a merged segment keeps the others.
func (m *machine) merge() {
	if merged(m.t, m.store) == 0 {
		return
	}
	m.counts["merged"]++
	for _, h := range m.store.handles() {
		for i := range m.segments {
			if s := &m.segments[i]; !s.last.Before(h.info.FirstArrival) && !s.last.After(h.info.LastArrival) {
				s.last = h.info.LastArrival
			}
		}
	}
}

// crash replaces the disk by what is left of it. What was acknowledged is all there, and becomes a
// segment of what the new store recovers.
func (m *machine) crash(cut func(*rand.Rand) *vfstest.Mem) {
	mem := cut(m.Rand())
	m.store.Stop(m.t.Context()) //nolint:errcheck // the disk below it is gone
	m.mem = mem
	m.open()
	m.lastWrite = m.clock.now() // as far as the store knows
	m.flush()
}

// expire lets time pass until the older half of the segments is due.
func (m *machine) expire() {
	m.flush()
	if len(m.segments) == 0 {
		return
	}
	due := m.segments[len(m.segments)/2].last
	if wait := due.Add(modelRetention + time.Nanosecond).Sub(m.clock.now()); wait > 0 {
		m.advance(wait)
	}
}

// advance lets time pass. Segments that are due go, exactly these.
func (m *machine) advance(d time.Duration) {
	m.clock.advance(d)
	limit := m.clock.now().Add(-modelRetention)
	gone := 0
	for len(m.segments) > 0 && m.segments[0].last.Before(limit) {
		gone += m.segments[0].requests
		m.segments = m.segments[1:]
	}
	if gone == 0 {
		return
	}
	m.Forget(gone)
	m.reopen() // the store expires at its start, and otherwise when it likes
	m.memory = openMemory(m.t)
	m.Replay(m.memory)
	m.CheckAll(m.store)
}

func (m *machine) reopen() {
	stopStore(m.t, m.store)
	m.seal(m.lastWrite)
	m.open()
}
