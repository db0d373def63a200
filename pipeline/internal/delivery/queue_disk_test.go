package delivery_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// Acknowledged batches are sent, with their metadata, by the next process, whether the first one
// was stopped, killed, or lost power.
func TestQueueOnDiskSurvives(t *testing.T) {
	for name, end := range map[string]func(*vfstest.Mem, *hosttest.Program) (*vfstest.Mem, error){
		"stop": func(m *vfstest.Mem, p *hosttest.Program) (*vfstest.Mem, error) { return m, p.End() },
		"kill": func(m *vfstest.Mem, _ *hosttest.Program) (*vfstest.Mem, error) { return m.Kill(), nil },
		"power cut": func(m *vfstest.Mem, _ *hosttest.Program) (*vfstest.Mem, error) {
			return m.Crash(rand.New(rand.NewPCG(1, 2))), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfstest.NewMem()
			p, source := hosttest.StartOnDisk(t, mem, hosttest.OnDisk, hosttest.NewNextHop(true))
			var want []string
			for i := range 50 {
				if err := source.Consume(t.Context(), hosttest.BatchFor(fmt.Sprint("t", i%3), fmt.Sprint("s", i))); err != nil {
					t.Fatal(err)
				}
				want = append(want, fmt.Sprint("t", i%3, " zipkin udp s", i))
			}
			slices.Sort(want)
			p.CheckNet(t, "dropped:0 in:50 queued:50 sent:0")
			mem, err := end(mem, p)
			if err != nil {
				t.Fatal(err)
			}
			p.End() //nolint:errcheck // its files are gone, or it has stopped
			back := hosttest.NewNextHop(false)
			p, _ = hosttest.StartOnDisk(t, mem, hosttest.OnDisk, back)
			if got := back.Await(50); !slices.Equal(got, want) {
				t.Errorf("got %q", got)
			}
			if err := p.End(); err != nil {
				t.Error(err)
			}
			p.CheckNet(t, "dropped:0 in:50 queued:0 sent:50")
			if !strings.Contains(p.Log.String(), `"balanced":true`) || !strings.Contains(p.Log.String(), `"net: on disk"`) {
				t.Errorf("log: %s", p.Log)
			}
		})
	}
}

// A full disk refuses new batches and keeps acknowledged ones.
func TestQueueOnFullDisk(t *testing.T) {
	full := &vfstest.Rule{Op: vfstest.OpWrite | vfstest.OpCreate, Err: vfstest.ErrNoSpace}
	full.Switch(false)
	mem := vfstest.NewMem()
	h := hosttest.NewNextHop(true)
	p, source := hosttest.StartOnDisk(t, vfstest.Inject(mem, full), hosttest.OnDisk, h)
	if err := source.Consume(t.Context(), hosttest.BatchFor("", "before")); err != nil {
		t.Fatal(err)
	}
	full.Switch(true)
	err := source.Consume(t.Context(), hosttest.BatchFor("", "during"))
	if code, after := pipeline.HTTPStatus(err); code != 503 || after == 0 {
		t.Errorf("%v: status %d, retry after %s", err, code, after)
	}
	full.Switch(false)
	if err := source.Consume(t.Context(), hosttest.BatchFor("", "after")); err != nil {
		t.Fatal(err)
	}
	h.SetAway(false)
	if got := h.Await(2); !slices.Equal(got, []string{" zipkin udp after", " zipkin udp before"}) {
		t.Errorf("got %q", got)
	}
	if err := p.End(); err != nil {
		t.Error(err)
	}
	p.CheckNet(t, "in:3 queued:0 refused:1 sent:2")
}

// With drop_oldest, the newest spans are kept, in memory and on disk.
func TestDropOldest(t *testing.T) {
	for _, storage := range []string{"", "storage: disk, "} {
		t.Run(storage, func(t *testing.T) {
			h := hosttest.NewNextHop(true)
			p, source := hosttest.StartOnDisk(t, vfstest.NewMem(),
				"retry_on_failure: {initial_interval: 10ms, max_interval: 10ms}, "+
					"sending_queue: {"+storage+"num_consumers: 1, queue_size: 5, overflow: drop_oldest}", h)
			for i := range 20 {
				if err := source.Consume(t.Context(), hosttest.BatchFor("", fmt.Sprint("s", 10+i))); err != nil {
					t.Fatal(err)
				}
			}
			h.SetAway(false)
			got := h.Await(5)
			if !slices.Contains(got, " zipkin udp s29") || !slices.Contains(got, " zipkin udp s26") {
				t.Errorf("got %q", got)
			}
			if err := p.End(); err != nil {
				t.Error(err)
			}
			p.CheckNet(t, "dropped:15 in:20 queued:0 sent:5")
			if n := bytes.Count(p.Log.Bytes(), []byte(`"reason":"overflow"`)); n != 15 {
				t.Errorf("%d log lines about dropped spans", n)
			}
		})
	}
}

// Two processes cannot open the same queue.
func TestQueueOnDiskIsLocked(t *testing.T) {
	mem := vfstest.NewMem()
	hosttest.StartOnDisk(t, mem, hosttest.OnDisk, hosttest.NewNextHop(true))
	second, _ := hosttest.NewNet(t, mem, hosttest.OnDisk, "data_dir: data", hosttest.NewNextHop(true).Send)
	err := second.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "sending_queue") || !strings.Contains(err.Error(), "is in use") {
		t.Errorf("got %v", err)
	}
}
