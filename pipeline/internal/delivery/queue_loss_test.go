package delivery_test

import (
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/status"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

const (
	queueDamaged = "sending queue file is damaged; batches may be lost; the file is moved when its other batches are sent"
	queueEnds    = "sending queue ends with records that cannot be read; they were not acknowledged, unless the disk has damaged them"
	queueReread  = "read a sending queue file that could not be read before"
)

// Damage to the last batch of a queue whose process was killed is counted if the batch was put some
// time before, and if its write was not interrupted. Otherwise, there is a warning.
func TestLastBatchIsDamaged(t *testing.T) {
	long := strings.Repeat("s", 1500) // a batch of several sectors
	for _, c := range []struct {
		name    string
		service string
		wait    time.Duration // from the last batch to the end of the process
		at, n   int           // bytes that are zero afterwards
		message string
		cause   any
	}{
		{"after a checkpoint", long, 10 * time.Second, 512, 512, queueDamaged,
			"1 records are missing at 1 places in the file; they may be batches that were sent before"},
		{"before a checkpoint", long, 0, 512, 512, queueEnds, nil},
		{"in one sector", "s", 0, 60, 1, queueDamaged, "the last record cannot be read and may have been acknowledged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem, away := vfstest.NewMem(), hosttest.NewNextHop(true)
				p, source := hosttest.StartOnDisk(t, mem, hosttest.OnDisk, away)
				if err := source.Consume(t.Context(), hosttest.BatchFor("", c.service)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(c.wait)
				mem = mem.Kill()
				p.End() //nolint:errcheck // its files are gone
				clearBytes(t, mem, c.at, c.n)
				p, _ = hosttest.StartOnDisk(t, mem, hosttest.OnDisk, away)
				state := p.Status().Pipelines[0].Components[1].State
				lines := p.Logged(t, c.message)
				if len(lines) != 1 || lines[0]["error"] != c.cause {
					t.Fatalf("log: %s", p.Log)
				}
				if lost := c.message == queueDamaged; lost != (lines[0]["up_to_batches"] == 1.0) || lost != (state == status.Degraded) {
					t.Errorf("exporter is %s: %v", state, lines[0])
				}
			})
		})
	}
}

// clearBytes clears n bytes of the only file of a queue.
func clearBytes(t *testing.T, mem *vfstest.Mem, at, n int) {
	t.Helper()
	const dir = "data/net/queue/log"
	entries, err := mem.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	name := path.Join(dir, entries[0].Name)
	b, err := vfs.ReadFile(mem, name, 64<<20)
	if err != nil || len(strings.Trim(string(b[at:at+n]), "\x00")) == 0 {
		t.Fatalf("%s has no such batch, %v", name, err)
	}
	clear(b[at : at+n])
	if err := vfs.WriteFileAtomic(mem, name, b); err != nil {
		t.Fatal(err)
	}
}

// An exporter is degraded while a file of its queue cannot be read, and not after the file was read
// without a loss.
func TestQueueFileIsReadLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, hop := vfstest.NewMem(), hosttest.NewNextHop(true)
		p, source := hosttest.StartOnDisk(t, mem, hosttest.OnDisk, hop)
		for range 3 {
			if err := source.Consume(t.Context(), hosttest.BatchFor("", "s")); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.End(); err != nil {
			t.Fatal(err)
		}
		hop.SetAway(false)
		broken := &vfstest.Rule{Op: vfstest.OpRead, Path: "*.log", Err: vfstest.ErrIO}
		p, _ = hosttest.StartOnDisk(t, vfstest.Inject(mem, broken), hosttest.OnDisk, hop)
		if s := p.Status(); s.State != status.Degraded {
			t.Errorf("unreadable: %+v", s)
		}
		broken.Switch(false)
		hop.Await(3)
		time.Sleep(10 * time.Second)
		if s := p.Status(); s.State != status.OK {
			t.Errorf("readable: %+v", s.Pipelines[0].Components[1])
		}
		lines := p.Logged(t, queueReread)
		if len(lines) != 1 || lines[0]["batches"] != 3.0 || lines[0]["no_longer_lost"] != 3.0 {
			t.Errorf("log: %s", p.Log)
		}
		p.CheckNet(t, "in:3 queued:0 sent:3")
	})
}
