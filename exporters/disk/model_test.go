package disk

import (
	"context"
	"io"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/exporters/memory"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storetest"
)

// TestModel executes random operations, including crashes, on the store and compares its results
// with the memory store and with the model of package storetest.
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
	m := &machine{model: storetest.NewModel(t, seed), t: t, mem: vfstest.NewMem(), clock: newClock(), counts: map[string]int{}}
	m.open()
	m.memory = openMemory(t)
	for range operations {
		m.step()
		if t.Failed() {
			t.Fatalf("after %v: %s=%d", m.counts, soak.SeedVariable, seed)
		}
	}
	m.model.CheckAll(m.store, m.memory)
	stopStore(t, m.store)
	t.Logf("%v", m.counts)
}

// machine holds the store under test, the memory store and the model.
type machine struct {
	model    *storetest.Model
	t        *testing.T
	mem      *vfstest.Mem
	clock    *clock
	store    *exporter
	memory   storetest.Subject
	segments []batchesUntil // oldest first
	counts   map[string]int
	// lastWrite is the time of the last request that is not in a segment.
	lastWrite time.Time
}

// batchesUntil describes a segment: the number of its requests and when the last one arrived.
type batchesUntil struct {
	requests int
	last     time.Time
}

const modelRetention = time.Hour

func (m *machine) open() {
	s := newSetup(m.mem)
	s.clock = m.clock
	s.config.Retention.Time = pipeline.Duration(modelRetention)
	s.config.Memtable.MaxAge = pipeline.Duration(1000 * time.Hour) // only the model flushes
	s.config.Merge.MinSegments = 3
	m.store = s.start(m.t)
	checkNoFileLost(m.t, m.store)
}

// holder is an extension that references a store, which gives the test access to it.
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

// step executes one random operation.
func (m *machine) step() {
	name := "query"
	switch p := m.model.Rand().IntN(1000); {
	case p < 600:
		name = "write"
		m.advance(time.Second)
		m.model.Write(m.store, m.memory)
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
		m.model.Check(m.store, m.memory)
	}
	m.counts[name]++
}

// unsealed returns the number of requests that are not in a segment.
func (m *machine) unsealed() int {
	n := m.model.Written()
	for _, s := range m.segments {
		n -= s.requests
	}
	return n
}

// seal records that the requests in memory are in a segment now.
func (m *machine) seal(last time.Time) {
	if n := m.unsealed(); n > 0 {
		m.segments = append(m.segments, batchesUntil{n, last})
	}
}

func (m *machine) flush() {
	flushStore(m.t, m.store)
	m.seal(m.lastWrite)
}

// merge merges what is due. A merged segment expires when its latest span does.
func (m *machine) merge() {
	if mergeAll(m.t, m.store) == 0 {
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

// crash crashes the disk and starts a new store on the rest, which must recover all acknowledged
// spans. It flushes them to a segment.
func (m *machine) crash(cut func(*rand.Rand) *vfstest.Mem) {
	mem := cut(m.model.Rand())
	m.store.Stop(m.t.Context()) //nolint:errcheck // its disk has crashed
	m.mem = mem
	m.open()
	m.lastWrite = m.clock.now() // as far as the store knows
	m.flush()
}

// expire advances the clock until the older half of the segments has expired.
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

// advance advances the clock and checks that exactly the expired segments are removed.
func (m *machine) advance(d time.Duration) {
	m.clock.advance(d)
	limit := m.clock.now().Add(-modelRetention)
	expired := 0
	for len(m.segments) > 0 && m.segments[0].last.Before(limit) {
		expired += m.segments[0].requests
		m.segments = m.segments[1:]
	}
	if expired == 0 {
		return
	}
	m.model.Write(m.store, m.memory) // without a recent span, the store does not trust the clock at start
	m.lastWrite = m.clock.now()
	m.model.Forget(expired)
	m.reopen() // at start the store removes expired segments immediately
	m.memory = openMemory(m.t)
	m.model.Replay(m.memory)
	m.model.CheckAll(m.store)
}

func (m *machine) reopen() {
	stopStore(m.t, m.store)
	m.seal(m.lastWrite)
	m.open()
}
