package delivery_test

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/test/harness"
)

// smallDisk mounts a file system of 24 MiB, which holds one and a half files of the queue,
// and returns its folder.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestQueueOnFullDisk checks that an agent with a full disk refuses new spans and loses none of the
// acknowledged ones, also when it is killed and restarted. It accepts spans again when there is
// space.
func TestQueueOnFullDisk(t *testing.T) {
	harness.SkipIfShort(t)
	f := &queueFolder{t, smallDisk(t)}
	ballast := filepath.Join(f.dataDir, "ballast")
	f.must(os.WriteFile(ballast, make([]byte, 6<<20), 0o600))
	hop := startCountingHop(t, true)
	agent := startFolderAgent(t, hop.addr, f.dataDir)

	acked := map[int]bool{}
	next := 0
	send := func(retry time.Duration, n int) (taken int) {
		t.Helper()
		some, r := sendNumbered(t, agent, retry, next, n)
		next += n
		maps.Copy(acked, some)
		if again := r.Failures[codes.Unavailable]; again < n-len(some) || len(r.Failures) > min(again, 1) {
			t.Errorf("%d of %d requests were accepted, the others refused with %v", len(some), n, r.Failures)
		}
		return len(some)
	}
	if taken := send(0, 200); taken < 100 || taken == 200 {
		t.Errorf("%d requests of 128 KiB were accepted on 18 MiB", taken)
	}
	hop.setDown(false) // the disk is still full
	harness.AwaitQueue(t, agent, 0)
	if taken := send(time.Minute, 20); taken != 20 {
		t.Errorf("%d of 20 requests were accepted with an empty queue", taken)
	}

	hop.setDown(true)
	send(0, 200)
	waiting := harness.Queued(t, agent)
	agent.Kill()
	agent = startFolderAgent(t, hop.addr, f.dataDir)
	if found := harness.Queued(t, agent); found < waiting {
		t.Errorf("%v spans were queued, the new process found %v", waiting, found)
	}
	if taken := send(0, 50); taken == 50 {
		t.Error("all requests were accepted on a full disk")
	}
	f.remove(ballast)
	if taken := send(time.Minute, 20); taken != 20 {
		t.Errorf("%d of 20 requests were accepted after space was freed", taken)
	}
	hop.setDown(false)
	harness.AwaitQueue(t, agent, 0)
	account := exporterAccount(t, agent)
	if lost := missing(acked, hop.arrived()); len(lost) > 0 || count(account, "dropped") > 0 {
		t.Errorf("%d requests were acknowledged, %v are lost: %v", len(acked), lost, account)
	}
	t.Logf("%d of %d requests were acknowledged; %v spans were queued at the kill", len(acked), next, waiting)
	http.DefaultClient.CloseIdleConnections()
}
