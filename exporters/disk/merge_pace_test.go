package disk

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// worker simulates a merge: it works in steps of workStep and calls the pacer after each.
type worker struct {
	pacer *pacer
	done  int // steps
}

const workStep = 5 * time.Millisecond

func newWorker(e *exporter, m *merge) *worker {
	return &worker{pacer: &pacer{merger: e.merger, merge: m, load: &load{}, since: time.Now()}}
}

// work works for a duration, including pauses, or until an error.
func (w *worker) work(d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end); w.done++ {
		time.Sleep(workStep)
		if err := w.pacer.step(); err != nil {
			return err
		}
	}
	return nil
}

// share returns the part of a duration that was work.
func (w *worker) share(d time.Duration) float64 {
	return float64(w.done) * float64(workStep) / float64(d)
}

func TestPace(t *testing.T) {
	for name, c := range map[string]struct {
		load  time.Duration // between requests; 0: none
		merge merge
		want  float64 // part of the time that is work
	}{
		"under load":        {100 * time.Millisecond, merge{}, 0.25},
		"occasional spans":  {5 * time.Second, merge{}, 0.8 + 0.2*0.25},
		"idle":              {0, merge{}, 1},
		"too many segments": {100 * time.Millisecond, merge{hurry: true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const long = 100 * time.Second
				s := newSetup(vfstest.NewMem())
				e := s.open(t)
				var sender sync.WaitGroup
				if c.load > 0 {
					sender.Go(func() {
						n := newNumbers()
						for end := time.Now().Add(long + 2*quietTime); time.Now().Before(end); time.Sleep(c.load) {
							n.send(t, e, 1)
						}
					})
				}
				time.Sleep(2 * quietTime)
				w := newWorker(e, &c.merge)
				if err := w.work(long); err != nil {
					t.Fatal(err)
				}
				sender.Wait()
				if got := w.share(long); got < c.want-0.03 || got > c.want+0.03 {
					t.Errorf("merge worked %.2f of the time, want %.2f", got, c.want)
				}
				if got, want := testutil.ToFloat64(e.metrics.mergePauses), (1-w.share(long))*long.Seconds(); got < want-1 || got > want+1 {
					t.Errorf("counted %v s of pauses, want %v", got, want)
				}
			})
		})
	}
}

// TestMergeWaitsForFlushes: a merge pauses while a memtable is flushed or waits for its flush,
// unless the merge is urgent. If the disk is full, the merge is aborted to free its space.
func TestMergeWaitsForFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const long = 10 * time.Second
		slow := &vfstest.Rule{Op: vfstest.OpSync, Path: "0-*.tmp", Hook: func() { time.Sleep(2 * long) }}
		s := newSetup(vfstest.Inject(vfstest.NewMem(), slow))
		e := s.open(t)
		n := newNumbers()
		n.send(t, e, 10)
		e.intake.mu.Lock()
		e.intake.freeze()
		e.intake.mu.Unlock()
		synctest.Wait()
		w := newWorker(e, &merge{hurry: true, urgent: true})
		if err := w.work(long); err != nil || w.done < 1000 {
			t.Errorf("urgent merge did %d steps during a flush, want at least 1000; error %v", w.done, err)
		}
		w = newWorker(e, &merge{hurry: true})
		if err := w.work(long); err != nil || w.done != 1 {
			t.Errorf("merge did %d steps during a flush, want 1; error %v", w.done, err)
		}
		if err := w.work(long); err != nil || w.done < 1000 {
			t.Errorf("merge did %d steps after a flush, want at least 1000; error %v", w.done, err)
		}
		e.intake.mu.Lock()
		e.intake.full = errors.New("full")
		e.intake.mu.Unlock()
		if err := w.pacer.step(); !errors.Is(err, errDiskFull) || !aborted(err) {
			t.Errorf("merge on a full disk: error %v, want errDiskFull", err)
		}
	})
}

// TestMergeInBackground: the store merges while it receives spans and when it is idle. Stop does
// not wait for a merge to complete.
func TestMergeInBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfstest.NewMem()
		s := mergeSetup(mem)
		s.config.Merge.Enabled = true
		e := s.start(t)
		n := newNumbers()
		for range 50 {
			sendSegments(t, s, e, n, 1)
			time.Sleep(tick / 2)
		}
		time.Sleep(3 * tick)
		if left := len(e.handles()); left > 3+50/4 {
			t.Errorf("%d of 50 segments are left", left)
		}
		n.check(t, e)
		stopStore(t, e)

		began := make(chan struct{})
		slow := &vfstest.Rule{Op: vfstest.OpRead, Path: "0-*.seg", Times: 1, Hook: func() {
			close(began)
			time.Sleep(time.Minute)
		}}
		slow.Switch(false)
		s.fs = vfstest.Inject(mem, slow)
		e = s.start(t)
		sendSegments(t, s, e, n, 4)
		slow.Switch(true)
		<-began
		if err := e.Stop(t.Context()); err != nil {
			t.Errorf("Stop during a merge: %v", err)
		}
		slow.Switch(false)
		e = s.start(t)
		n.check(t, e)
		stopStore(t, e)
	})
}

// TestMergeFailuresAreLoggedOnce: failed merges are retried with increasing delays and logged once.
func TestMergeFailuresAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault := &vfstest.Rule{Op: vfstest.OpCreate, Path: "1-*", Err: errors.New("simulated failure")}
		s := mergeSetup(vfstest.Inject(vfstest.NewMem(), fault))
		core, logs := observer.New(zap.InfoLevel)
		s.log = zap.New(core)
		s.config.Merge.Enabled = true
		s.config.Retention.Time = pipeline.Duration(1000 * time.Hour)
		e := s.open(t)
		n := newNumbers()
		sendSegments(t, s, e, n, 4)
		time.Sleep(time.Hour)
		failures := testutil.ToFloat64(e.metrics.mergeFailures)
		if failures < 12 || failures > 25 {
			t.Errorf("%v attempts in an hour, want 12 to 25", failures)
		}
		fault.Switch(false)
		time.Sleep(maxMergeBackoff)
		if n := len(e.handles()); n != 1 {
			t.Errorf("%d segments after the fault, want 1", n)
		}
		bad, good := logs.FilterMessageSnippet("merge failed").Len(), logs.FilterMessageSnippet("merging of segments recovered").Len()
		if bad != 1 || good != 1 {
			t.Errorf("logged the failure %d times and the recovery %d times, want once each", bad, good)
		}
	})
}
