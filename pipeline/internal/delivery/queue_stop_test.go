package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// Stopping a queue on disk waits briefly for current attempts. Batches with a response are removed.
func TestStopOfQueueOnDisk(t *testing.T) {
	hang := func(ctx context.Context, _ *otlpdata.Batch) error {
		<-ctx.Done()
		return ctx.Err()
	}
	slowly := func(err error) func(context.Context, *otlpdata.Batch) error {
		return func(context.Context, *otlpdata.Batch) error {
			time.Sleep(1500 * time.Millisecond)
			return err
		}
	}
	for _, c := range []struct {
		name  string
		send  func(context.Context, *otlpdata.Batch) error
		takes time.Duration
		want  string
	}{
		{"away", func(context.Context, *otlpdata.Batch) error { return errors.New("away") }, 0, "dropped:0 in:5 queued:5 sent:0"},
		{"hanging", hang, 2 * time.Second, "dropped:0 in:5 queued:5 sent:0"},
		{"slow", slowly(nil), 1500 * time.Millisecond, "dropped:0 in:5 queued:3 sent:2"},
		{"slow and unwilling", slowly(pipeline.Permanent(errors.New("no"))), 1500 * time.Millisecond, "dropped:2 in:5 queued:3 sent:0"},
		{"slow and busy", slowly(pipeline.Overloaded(errors.New("busy"), 0)), 1500 * time.Millisecond, "dropped:0 in:5 queued:5 sent:0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, source := hosttest.StartNetOn(t, vfstest.NewMem(), "sending_queue: {storage: disk, num_consumers: 2}", "data_dir: data", c.send)
				for range 5 {
					if err := source.Consume(t.Context(), hosttest.OneSpan("a")); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				start := time.Now()
				if err := p.End(); err != nil || time.Since(start) != c.takes {
					t.Errorf("%v after %s", err, time.Since(start))
				}
				p.CheckNet(t, c.want)
				if !strings.Contains(p.Log.String(), `"balanced":true`) {
					t.Errorf("log: %s", p.Log)
				}
			})
		})
	}
}

// The files are closed even if an exporter ignores its context.
func TestStopOfQueueWithStuckExporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, release := vfstest.NewMem(), make(chan struct{})
		p, source := hosttest.StartNetOn(t, mem, "sending_queue: {storage: disk, num_consumers: 1}", "data_dir: data",
			func(context.Context, *otlpdata.Batch) error {
				<-release
				return nil
			})
		if err := source.Consume(t.Context(), hosttest.OneSpan("a")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := p.End(); err == nil || !strings.Contains(err.Error(), "still sending") {
			t.Errorf("%v", err)
		}
		if n := mem.Handles(); n != 0 {
			t.Errorf("%d files are open", n)
		}
		close(release)
		synctest.Wait()
		p.CheckNet(t, "in:1 queued:0 sent:1")
	})
}

// Batches in files that disappear are counted as lost, and their capacity is released.
func TestQueueOnDiskLosesFiles(t *testing.T) {
	mem, away := vfstest.NewMem(), hosttest.NewNextHop(true)
	p, source := hosttest.StartOnDisk(t, mem, hosttest.OnDisk, away)
	for i := range 20 {
		if err := source.Consume(t.Context(), hosttest.BatchFor("", fmt.Sprint("s", i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.End(); err != nil {
		t.Fatal(err)
	}
	// The file can be read when the queue is opened, but not later.
	broken := &vfstest.Rule{Op: vfstest.OpOpen, Path: "*.log", Err: vfstest.ErrIO, Skip: 1}
	p, source = hosttest.StartOnDisk(t, vfstest.Inject(mem, broken), hosttest.OnDisk, away)
	logs := "data/net/queue/log"
	entries, err := mem.ReadDir(logs)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := mem.Remove(path.Join(logs, e.Name)); err != nil {
			t.Fatal(err)
		}
	}
	away.SetAway(false)
	if err := source.Consume(t.Context(), hosttest.BatchFor("", "new")); err != nil {
		t.Fatal(err)
	}
	away.Await(1)
	for start := time.Now(); p.NetCounts(t)["dropped"] != 20 && time.Since(start) < 10*time.Second; {
		time.Sleep(10 * time.Millisecond)
	}
	p.CheckNet(t, "dropped:20 in:21 queued:0 sent:1")
	if n := strings.Count(p.Log.String(), "sending queue file is gone"); n != 1 {
		t.Errorf("log: %s", p.Log)
	}
}

// Metrics can be collected before and while the queue is opened.
func TestMetricsWhileQueueOpens(t *testing.T) {
	p, _ := hosttest.NewNet(t, vfstest.NewMem(), hosttest.OnDisk, "data_dir: data", hosttest.NewNextHop(true).Send)
	stop := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				p.NetCounts(t)
			}
		}
	})
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(stop)
	reading.Wait()
	if err := p.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
