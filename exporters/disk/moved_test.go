package disk

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// movable is a store on the disk of the machine, with its reports.
type movable struct {
	*setup
	parent, path string
	reports      chan error
}

func newMovable(t *testing.T) *movable {
	parent := t.TempDir()
	m := &movable{newSetup(vfs.OS()), parent, filepath.Join(parent, "disk"), make(chan error, 1000)}
	m.config.Directory, m.report = m.path, func(err error) { m.reports <- err }
	return m
}

// awaitMoved waits until the store reports that it is not ready because its folder was moved.
func (m *movable) awaitMoved(t *testing.T) {
	t.Helper()
	for err := range m.reports {
		if err == nil || !strings.Contains(err.Error(), "is not the folder that this process opened") {
			continue
		}
		if !pipeline.IsNotReady(err) || !strings.Contains(err.Error(), "move the folder back, or restart") {
			t.Errorf("reported %v, want that the store is not ready, and what to do", err)
		}
		return
	}
}

// checkPath checks that the store has not created a folder.
func (m *movable) checkPath(t *testing.T) {
	t.Helper()
	if entries, err := os.ReadDir(m.path); !os.IsNotExist(err) {
		t.Errorf("the path was recreated with %v, %v", entries, err)
	}
}

// TestMovedUnderLoad moves the folder of a store while it takes spans. From then on spans are
// refused with a temporary error. All acknowledged spans are in the folder.
func TestMovedUnderLoad(t *testing.T) {
	m, n := newMovable(t), newNumbers()
	m.config.Memtable.MaxSpans = 2000 // flushes while the folder is moved
	e := m.start(t)
	var senders sync.WaitGroup
	var begun sync.WaitGroup
	begun.Add(4)
	for range 4 {
		senders.Go(func() {
			for i := 0; ; i++ {
				b := n.next(50)
				if err := e.Consume(t.Context(), b); err != nil {
					if pipeline.IsPermanent(err) {
						t.Errorf("refused with a permanent error: %v", err)
					}
					if i <= 100 {
						begun.Done()
					}
					return
				}
				n.ack(b)
				if i == 100 {
					begun.Done()
				}
			}
		})
	}
	begun.Wait()
	moved := filepath.Join(m.parent, "moved")
	if err := os.Rename(m.path, moved); err != nil {
		t.Fatal(err)
	}
	senders.Wait()
	m.awaitMoved(t)
	if err := e.Stop(t.Context()); err == nil {
		t.Error("Stop returns no error although spans could not be flushed")
	}
	m.checkPath(t)
	m.config.Directory = moved
	n.check(t, m.open(t))
}

// TestDeletedFolder deletes the folder of a running store. No span is acknowledged after that, and
// the folder is not created.
func TestDeletedFolder(t *testing.T) {
	m, n := newMovable(t), newNumbers()
	e := m.start(t)
	n.send(t, e, 30)
	flushStore(t, e)
	n.send(t, e, 30)
	if err := os.RemoveAll(m.path); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := e.Consume(t.Context(), n.next(10)); err == nil || pipeline.IsPermanent(err) {
			t.Errorf("after the folder is gone: %v, want a temporary error", err)
		}
	}
	m.awaitMoved(t)
	m.checkPath(t)
	if err := e.Stop(t.Context()); err == nil {
		t.Error("Stop returns no error although spans could not be flushed")
	}
	m.checkPath(t)
}

// TestReplacedFolder starts a second store on the path from which the folder of the first one was
// moved. Neither disturbs the other. When its folder is moved back, the first one continues.
func TestReplacedFolder(t *testing.T) {
	m, n := newMovable(t), newNumbers()
	first := m.open(t)
	n.send(t, first, 30)
	flushStore(t, first)
	n.send(t, first, 30)
	moved := filepath.Join(m.parent, "moved")
	if err := os.Rename(m.path, moved); err != nil {
		t.Fatal(err)
	}
	other, o := newMovable(t), newNumbers()
	other.config.Directory = m.path
	second := other.start(t)
	o.send(t, second, 20)
	if err := first.Consume(t.Context(), n.next(10)); err == nil || pipeline.IsPermanent(err) {
		t.Errorf("spans for the first store: %v, want a temporary error", err)
	}
	m.awaitMoved(t)
	if _, err := first.Delete(t.Context(), "", tracestore.Deletion{From: startOf(0)}); err == nil {
		t.Error("a deletion is accepted")
	}
	o.send(t, second, 20)
	stopStore(t, second)
	second = other.start(t)
	o.check(t, second)
	stopStore(t, second)
	if err := os.Rename(m.path, filepath.Join(m.parent, "second")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(moved, m.path); err != nil {
		t.Fatal(err)
	}
	for err := range m.reports {
		if err == nil {
			break
		}
	}
	n.send(t, first, 10)
	n.check(t, first)
	flushStore(t, first)
	n.check(t, first)
}

// TestDeletedLog deletes the log of a running store. Acknowledged spans come into a segment.
func TestDeletedLog(t *testing.T) {
	m, n := newMovable(t), newNumbers()
	e := m.start(t)
	n.send(t, e, 30)
	if err := os.RemoveAll(filepath.Join(m.path, "log")); err != nil {
		t.Fatal(err)
	}
	if err := e.Consume(t.Context(), n.next(10)); err == nil || pipeline.IsPermanent(err) {
		t.Errorf("%v, want a temporary error", err)
	}
	n.send(t, e, 10)
	stopStore(t, e)
	n.check(t, m.open(t))
}

// TestDeletedLockFile deletes the file LOCK of a running store. Spans are refused, and the report
// says what to do; there is no folder to move back. The next process has all acknowledged spans.
func TestDeletedLockFile(t *testing.T) {
	m, n := newMovable(t), newNumbers()
	e := m.start(t)
	n.send(t, e, 30)
	if err := os.Remove(filepath.Join(m.path, "LOCK")); err != nil {
		t.Fatal(err)
	}
	if err := e.Consume(t.Context(), n.next(10)); err == nil || pipeline.IsPermanent(err) {
		t.Errorf("%v, want a temporary error", err)
	}
	for err := range m.reports {
		if err == nil {
			continue
		}
		text := err.Error()
		if !strings.Contains(text, "LOCK was deleted") || !strings.Contains(text, "restart the process") ||
			strings.Contains(text, "move the folder") {
			t.Errorf("reported %v, want that LOCK is gone, and what to do", err)
		}
		break
	}
	if err := e.Stop(t.Context()); err == nil {
		t.Error("Stop returns no error although spans could not be flushed")
	}
	n.check(t, m.open(t))
}
