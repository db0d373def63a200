package disk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// TestDeletedWhileRunning: segment files that are deleted while the store runs are written again,
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
				if err := e.damageError(); err != nil {
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

// TestDeletedOnFullDisk: while a deleted segment file cannot be written again, the store is
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
			if err := mem.Remove(e.dir.Path(e.handles()[0].name)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * deletedFilesInterval)
			synctest.Wait()
			if reported == nil || !strings.Contains(reported.Error(), "was deleted while it was in use; 20 spans") || pipeline.IsNotReady(reported) {
				t.Errorf("reported %v, want that the file was deleted", reported)
			}
			n.check(t, e)
			full.Switch(false)
			if restored {
				time.Sleep(2 * maxMergeBackoff)
				synctest.Wait()
				if reported != nil {
					t.Errorf("reported %v after the disk has space", reported)
				}
			}
			stopStore(t, e)
			e = s.open(t)
			lost := testutil.ToFloat64(e.metrics.lostSpans)
			if restored != (lost == 0) || restored != (e.lossReason() == "") || restored != (reported == nil) {
				t.Errorf("restored: %v: %v spans are lost; answers miss %q; reported %v", restored, lost, e.lossReason(), reported)
			}
		})
	}
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
