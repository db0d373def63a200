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

// worker stands for a merge: it works in steps of a time and asks the pacer after each.
type worker struct {
	pacer *pacer
	done  int // steps
}

const workStep = 5 * time.Millisecond

func newWorker(e *exporter, m *merge) *worker {
	return &worker{pacer: &pacer{store: e, merge: m, load: &load{}, since: time.Now()}}
}

// work works for so long, pauses included, or until an error.
func (w *worker) work(d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end); w.done++ {
		time.Sleep(workStep)
		if err := w.pacer.step(); err != nil {
			return err
		}
	}
	return nil
}

// share is how much of a time was work.
func (w *worker) share(d time.Duration) float64 {
	return float64(w.done) * float64(workStep) / float64(d)
}

func TestPace(t *testing.T) {
	for name, c := range map[string]struct {
		load  time.Duration // between requests; 0: none
		merge merge
		want  float64 // share of the time
	}{
		"spans come in":     {100 * time.Millisecond, merge{}, 0.25},
		"now and then":      {5 * time.Second, merge{}, 0.8 + 0.2*0.25},
		"no span comes":     {0, merge{}, 1},
		"too many segments": {100 * time.Millisecond, merge{hurry: true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const long = 100 * time.Second
				s := small(vfstest.NewMem())
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
					t.Errorf("the merge worked %.2f of the time, want %.2f", got, c.want)
				}
				if got, want := testutil.ToFloat64(e.metrics.mergePauses), (1-w.share(long))*long.Seconds(); got < want-1 || got > want+1 {
					t.Errorf("%v s of pauses are counted, want %v", got, want)
				}
			})
		})
	}
}

// TestMergeWaitsForFlushes: while a memtable is written, or waits for that, a merge stands still; a
// disk on which that fails, and one that is full, gets back what the merge has taken.
func TestMergeWaitsForFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const long = 10 * time.Second
		slow := &vfstest.Rule{Op: vfstest.OpSync, Path: "0-*.tmp", Hook: func() { time.Sleep(2 * long) }}
		s := small(vfstest.Inject(vfstest.NewMem(), slow))
		e := s.open(t)
		n := newNumbers()
		n.send(t, e, 10)
		e.mu.Lock()
		e.freeze()
		e.mu.Unlock()
		synctest.Wait()
		w := newWorker(e, &merge{hurry: true, urgent: true})
		if err := w.work(long); err != nil || w.done < 1000 {
			t.Errorf("%d steps of an urgent merge during a flush; %v", w.done, err)
		}
		w = newWorker(e, &merge{hurry: true})
		if err := w.work(long); err != nil || w.done != 1 {
			t.Errorf("%d steps during a flush, want 1; %v", w.done, err)
		}
		if err := w.work(long); err != nil || w.done < 1000 {
			t.Errorf("%d steps after a flush; %v", w.done, err)
		}
		e.mu.Lock()
		e.full = errors.New("full")
		e.mu.Unlock()
		if err := w.pacer.step(); !errors.Is(err, errDiskFull) || !aborted(err) {
			t.Errorf("a merge on a full disk: %v", err)
		}
	})
}

// TestMergeInTheBackground: the store merges by itself, while it takes spans and after; Stop does
// not wait for a merge to end.
func TestMergeInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfstest.NewMem()
		s := merging(mem)
		s.config.Merge.Enabled = true
		e := s.start(t)
		n := newNumbers()
		for range 50 {
			sendSegments(t, s, e, n, 1)
			time.Sleep(tick / 2)
		}
		time.Sleep(3 * tick)
		if left := len(e.handles()); left > 3+50/4 {
			t.Errorf("%d segments are left of 50", left)
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
			t.Errorf("Stop in the middle of a merge: %v", err)
		}
		slow.Switch(false)
		e = s.start(t)
		n.check(t, e)
		stopStore(t, e)
	})
}

// TestMergeFailuresAreLoggedOnce: merges that fail are repeated less and less often, and told of
// once.
func TestMergeFailuresAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault := &vfstest.Rule{Op: vfstest.OpCreate, Path: "1-*", Err: errors.New("no such luck")}
		s := merging(vfstest.Inject(vfstest.NewMem(), fault))
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
			t.Errorf("%v attempts in an hour", failures)
		}
		fault.Switch(false)
		time.Sleep(maxMergeBackoff)
		if n := len(e.handles()); n != 1 {
			t.Errorf("%d segments after the trouble", n)
		}
		bad, good := logs.FilterMessageSnippet("merge failed").Len(), logs.FilterMessageSnippet("merging segments recovered").Len()
		if bad != 1 || good != 1 {
			t.Errorf("logged the failure %d times and the recovery %d times, want once each", bad, good)
		}
	})
}
