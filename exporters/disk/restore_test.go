package disk

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// TestDeletedWhileRunning: segment files that are deleted while the store runs are rewritten,
// also if their folder is gone.
func TestDeletedWhileRunning(t *testing.T) {
	for what, remove := range map[string]string{"file": "seg/*/*.seg", "day": "seg/*", "folder": "seg"} {
		t.Run(what, func(t *testing.T) {
			s := newSetup(vfs.OS())
			s.config.Directory = t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				e, n := s.start(t), newNumbers()
				for range 3 {
					n.send(t, e, 20)
					flushStore(t, e)
				}
				found, err := filepath.Glob(filepath.Join(s.config.Directory, remove))
				for _, name := range found {
					err = errors.Join(err, os.RemoveAll(name))
				}
				if err != nil || len(found) == 0 {
					t.Fatal(found, err)
				}
				time.Sleep(2 * deletedFilesInterval)
				synctest.Wait()
				if n := testutil.ToFloat64(e.metrics.restored); n != 3 {
					t.Errorf("%v files were restored, want 3", n)
				}
				if err := e.health.damageError(); err != nil {
					t.Error(err)
				}
				n.check(t, e)
				stopStore(t, e)
				e = s.open(t)
				checkNothingLost(t, e)
				n.check(t, e)
			})
		})
	}
}

// deleteFiles removes the files of all segments behind the store's back.
func deleteFiles(tb testing.TB, e *exporter) {
	tb.Helper()
	for _, h := range e.handles() {
		if err := e.dir.FS().Remove(e.dir.Path(h.name)); err != nil {
			tb.Fatal(err)
		}
	}
}

// TestDeletedOnFullDisk: while a deleted segment file cannot be rewritten, the store is
// degraded and answers with its spans. If the process ends before it could be written, they are
// lost, and that is said.
func TestDeletedOnFullDisk(t *testing.T) {
	for _, restored := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			mem := vfstest.NewMem()
			full := &vfstest.Rule{Op: vfstest.OpCreate, Path: "*.seg.tmp", Err: vfstest.ErrNoSpace}
			full.Switch(false)
			s := newSetup(vfstest.Inject(mem, full))
			var reported error
			s.report = func(err error) { reported = err }
			e, n := s.start(t), newNumbers()
			n.send(t, e, 20)
			flushStore(t, e)
			full.Switch(true)
			deleteFiles(t, e)
			time.Sleep(2 * deletedFilesInterval)
			synctest.Wait()
			if reported == nil || !strings.Contains(reported.Error(), "were deleted while they were in use") ||
				!strings.Contains(reported.Error(), "20 spans") || pipeline.IsNotReady(reported) {
				t.Errorf("reported %v, want that the file was deleted", reported)
			}
			n.check(t, e)
			if restored {
				full.Switch(false)
				time.Sleep(2 * maxMergeBackoff)
				synctest.Wait()
				if reported != nil {
					t.Errorf("reported %v after the disk has space", reported)
				}
				stopStore(t, e)
			} else if err := e.Stop(t.Context()); !vfs.NoSpace(err) || !strings.Contains(err.Error(), "20 spans will be lost") {
				t.Errorf("Stop: %v, want that spans are lost", err)
			}
			full.Switch(false)
			e = s.open(t)
			lost := testutil.ToFloat64(e.metrics.lostSpans)
			if restored != (lost == 0) || restored != (e.health.lossReason() == "") || restored != (reported == nil) {
				t.Errorf("restored: %v: %v spans are lost; answers miss %q; reported %v", restored, lost, e.health.lossReason(), reported)
			}
		})
	}
}

// TestRestoreKeepsDiskFree: restoring deleted files needs the space of one of them beyond min_free
// and the reserve. With less, nothing is written and nothing is dropped, and that is logged once
// for all files.
func TestRestoreKeepsDiskFree(t *testing.T) {
	for what, enough := range map[string]bool{"enough": true, "too little": false} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const quota, minFree, reserve, segments = 1 << 30, 64 << 10, 16 << 10, 8
				mem := vfstest.NewMem()
				mem.SetQuota(quota)
				s := newSetup(mem)
				s.config.DiskFull, s.config.MinFree, s.config.Reserve = dropWhenFull, minFree, reserve
				core, logs := observer.New(zap.WarnLevel)
				s.log = zap.New(core)
				e, n := s.open(t), newNumbers()
				sendSegments(t, s, e, n, segments)
				time.Sleep(2 * tick)
				free, err := mem.Free(folder)
				if err != nil {
					t.Fatal(err)
				}
				list := e.handles()
				left := int64(minFree + reserve)
				for _, h := range list {
					if left = max(left, minFree+reserve+h.info.Size); !enough {
						left = minFree + reserve + h.info.Size/2
					}
				}
				mem.SetQuota(quota - free + left)
				deleteFiles(t, e)
				time.Sleep(2 * deletedFilesInterval)
				synctest.Wait()
				free, err = mem.Free(folder)
				if restored := testutil.ToFloat64(e.metrics.restored); free != left || err != nil || enough != (restored == segments) {
					t.Errorf("%v files were restored; %d bytes are free, want %d; %v", restored, free, left, err)
				}
				want := "segment files were deleted while they were in use; rewrote them; no spans are lost"
				if !enough {
					want = "cannot restore deleted segment files; their spans can be read until the process ends; will retry"
					text := fmt.Sprint(e.health.damageError())
					if !strings.Contains(text, "8 segment files") || !strings.Contains(text, " and 5 more; 240 spans") || strings.Count(text, ".seg") > 4 {
						t.Errorf("status: %s", text)
					}
				}
				if all := logs.FilterMessage(want).All(); len(all) == 0 || len(all) > 2 || len(all) != logs.Len() {
					t.Errorf("logged %v, want %s", logs.All(), want)
				}
				n.check(t, e)
				mem.SetQuota(quota)
				time.Sleep(2 * maxMergeBackoff)
				synctest.Wait()
				if err := e.health.damageError(); err != nil {
					t.Error(err)
				}
				n.check(t, e)
			})
		})
	}
}

// TestDeletedBeforeStop: files that are deleted just before the store stops are restored. If that
// takes long, a stop flushes first.
func TestDeletedBeforeStop(t *testing.T) {
	for what, wait := range map[string]time.Duration{"just before": 0, "while restoring": 2 * deletedFilesInterval} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := &vfstest.Rule{Op: vfstest.OpSync, Path: "*.seg.tmp", Hook: func() { time.Sleep(time.Hour) }}
				slow.Switch(false)
				s := newSetup(vfstest.Inject(vfstest.NewMem(), slow))
				e, n := s.start(t), newNumbers()
				sendSegments(t, s, e, n, 4)
				n.send(t, e, 10)
				slow.Switch(true)
				deleteFiles(t, e)
				time.Sleep(wait)
				done := make(chan error, 1)
				go func() { done <- e.Stop(t.Context()) }()
				time.Sleep(2*time.Hour + time.Minute)
				e.intake.mu.Lock()
				if len(e.intake.frozen) > 0 {
					t.Error("2 hours after Stop, it has not flushed")
				}
				e.intake.mu.Unlock()
				if err := <-done; err != nil {
					t.Error(err)
				}
				slow.Switch(false)
				e = s.open(t)
				checkNothingLost(t, e)
				n.check(t, e)
			})
		})
	}
}

// TestStopEndsRestoring: a stop ends with its context although files are still to be restored.
func TestStopEndsRestoring(t *testing.T) {
	s := newSetup(vfstest.NewMem())
	e, n := s.start(t), newNumbers()
	sendSegments(t, s, e, n, 2)
	deleteFiles(t, e)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := e.restorer.restoreDeletedFiles(ctx)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "60 spans will be lost") {
		t.Errorf("%v, want that it was canceled", err)
	}
	stopStore(t, e)
	n.check(t, s.open(t))
}

// TestRestoreMergedFiles: a merge whose inputs are deleted and restored is aborted, and done later.
func TestRestoreMergedFiles(t *testing.T) {
	mem := vfstest.NewMem()
	var e *exporter
	merging := &vfstest.Rule{Op: vfstest.OpSync, Path: "1-*.tmp", Times: 1, Hook: func() {
		deleteFiles(t, e)
		if err := e.restorer.restoreDeletedFiles(t.Context()); err != nil {
			t.Error(err)
		}
	}}
	s := mergeSetup(vfstest.Inject(mem, merging))
	e = s.open(t)
	n := newNumbers()
	sendSegments(t, s, e, n, 4)
	before := mem.Handles()
	if _, err := e.merger.mergeNext(withoutPauses(e)); !errors.Is(err, errInputExpired) {
		t.Errorf("merge of deleted files: %v, want errInputExpired", err)
	}
	if after := mem.Handles(); after != before {
		t.Errorf("%d open files, before %d", after, before)
	}
	n.check(t, e)
	if mergeAll(t, e) == 0 || len(e.handles()) != 1 {
		t.Errorf("%d segments after merging", len(e.handles()))
	}
	n.check(t, e)
}

// TestRestoreFiltered: deleted spans stay hidden in a restored file.
func TestRestoreFiltered(t *testing.T) {
	e, d := newSetup(vfstest.NewMem()).open(t), newDeletedNumbers()
	d.write(t, e, 60)
	flushStore(t, e)
	for seed := range uint64(3) {
		if err := d.deleteRandom(t, e, rand.New(rand.NewPCG(seed, 1))); err != nil {
			t.Fatal(err)
		}
	}
	deleteFiles(t, e)
	if err := e.restorer.restoreDeletedFiles(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.check(t, e)
}

// TestOutdatedList: a list of segments that an older program left as it was, because it does not
// know the list, reports neither merged nor expired segments as missing.
func TestOutdatedList(t *testing.T) {
	mem := vfstest.NewMem()
	s := mergeSetup(mem)
	e, n := s.start(t), newNumbers()
	sendSegments(t, s, e, n, 4)
	name := e.dir.ListFile()
	list, err := vfs.ReadFile(mem, name, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if mergeAll(t, e) == 0 {
		t.Fatal("nothing was merged")
	}
	stopStore(t, e)
	if err := vfs.WriteFileAtomic(mem, name, list); err != nil {
		t.Fatal(err)
	}
	e = s.start(t)
	checkNothingLost(t, e)
	n.check(t, e)
	last := e.handles()[len(e.handles())-1]
	stopStore(t, e)
	if err := mem.Remove(e.dir.Path(last.name)); err != nil {
		t.Fatal(err)
	}
	s.clock.advance(2 * time.Duration(s.config.Retention.Time))
	checkNothingLost(t, s.open(t))
}
