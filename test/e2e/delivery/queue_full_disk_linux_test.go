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

// smallDisk mounts a disk of 24 MiB, which is full after one file of the queue and a half, and returns its folder.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("there is no small disk, since this user may not mount one: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// A full disk refuses clients for the time being and costs nothing that was acknowledged, through a kill and a restart on the full disk, too.
// When there is space again, because the next hop is back or somebody made some, the agent goes on by itself.
func TestQueueOnFullDisk(t *testing.T) {
	harness.SkipShort(t)
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
			t.Errorf("%d of %d requests were taken, the others refused with %v", len(some), n, r.Failures)
		}
		return len(some)
	}
	if taken := send(0, 200); taken < 100 || taken == 200 {
		t.Errorf("%d requests of 128 KiB have found room on 18 MiB", taken)
	}
	hop.setAway(false) // on a disk that is still full
	harness.AwaitBacklog(t, agent, 0)
	if taken := send(time.Minute, 20); taken != 20 {
		t.Errorf("%d of 20 requests were taken when the queue was empty again", taken)
	}

	hop.setAway(true)
	send(0, 200)
	waiting := harness.Queued(t, agent)
	agent.Kill()
	agent = startFolderAgent(t, hop.addr, f.dataDir)
	if found := harness.Queued(t, agent); found < waiting {
		t.Errorf("%v spans were queued, the next process finds %v", waiting, found)
	}
	if taken := send(0, 50); taken == 50 {
		t.Error("a full disk has room for everything")
	}
	f.remove(ballast)
	if taken := send(time.Minute, 20); taken != 20 {
		t.Errorf("%d of 20 requests were taken when there was space again", taken)
	}
	hop.setAway(false)
	harness.AwaitBacklog(t, agent, 0)
	account := exporterAccount(t, agent)
	if lost := missing(acked, hop.arrived()); len(lost) > 0 || number(account, "dropped") > 0 {
		t.Errorf("of %d requests that were acknowledged %v are lost: %v", len(acked), lost, account)
	}
	t.Logf("%d of %d requests were acknowledged; %v spans were queued at the kill", len(acked), next, waiting)
	http.DefaultClient.CloseIdleConnections()
}
