package delivery_test

import (
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/harness"
)

// folderDamage is a kind of damage to the folder of a queue.
type folderDamage struct {
	name     string
	do       func(f *queueFolder, rnd *rand.Rand)
	flips    int  // number of flipped bits; 0 if the files are intact
	noFolder bool // damaged files cannot be moved
	whole    bool // a whole file that was full is lost, and reported
	unknown  bool // the files do not show how much is lost
}

func folderDamages() []folderDamage {
	remove := func(which func(*queueFolder) string) func(*queueFolder, *rand.Rand) {
		return func(f *queueFolder, _ *rand.Rand) { f.remove(which(f)) }
	}
	return []folderDamage{
		{name: "bit flips", flips: 40, do: func(f *queueFolder, rnd *rand.Rand) {
			for _, name := range f.logs() {
				f.flip(rnd, name, 40/len(f.logs()))
			}
		}},
		{name: "the first record", flips: 1, do: func(f *queueFolder, _ *rand.Rand) {
			f.overwrite(f.logs()[0], 20, []byte{255})
		}},
		{name: "the last record", flips: 1, do: func(f *queueFolder, _ *rand.Rand) {
			f.overwrite(f.logs()[2], f.used(f.logs()[2])-textOfRequest/2, []byte{255})
		}},
		{name: "no folder for damaged files", flips: 1, noFolder: true, do: func(f *queueFolder, _ *rand.Rand) {
			f.overwrite(f.logs()[0], 20, []byte{255})
			f.write("damaged", nil)
		}},
		{name: "first file deleted", whole: true, do: remove(func(f *queueFolder) string { return f.logs()[0] })},
		{name: "middle file deleted", whole: true, do: remove(func(f *queueFolder) string { return f.logs()[1] })},
		{name: "last file deleted", unknown: true, do: remove(func(f *queueFolder) string { return f.logs()[len(f.logs())-1] })},
		{name: "LOCK deleted", do: remove(func(f *queueFolder) string { return f.path("LOCK") })},
		{name: "folder deleted", unknown: true, do: remove(func(f *queueFolder) string { return f.path("") })},
		{name: "truncated and empty files", unknown: true, do: func(f *queueFolder, _ *rand.Rand) {
			logs := f.logs()
			f.must(os.Truncate(logs[0], 10<<20))
			f.must(os.Truncate(logs[1], 0))
			f.must(os.Truncate(logs[2], 40)) // a header without its payload
		}},
		{name: "foreign files", do: (*queueFolder).addForeign},
	}
}

// addForeign adds files that the queue has not written, some of them under names that it uses.
func (f *queueFolder) addForeign(rnd *rand.Rand) {
	noise := make([]byte, 1<<20)
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	f.write("log/0000000000000001-0000.log", noise)
	f.write("log/ffffffffffffffff-0000.log", noise[:1000])
	f.write("log/00000000000000ff-0000.log", nil)
	f.write("log/spare-0.log", noise)
	f.write("log/notes.txt", noise)
	f.write("log/-.log", noise)
	f.write("damaged", nil)
	f.must(os.Mkdir(f.path("log/fffffffffffffffe-0000.log"), 0o700))
	f.must(os.Symlink("nowhere", f.path("log/0000000000000002-0000.log")))
}

// TestDamagedQueue damages the queue of a killed agent in several ways. The agent starts every
// time. The intact requests arrive, the damaged ones are reported and their files kept, and new
// spans are forwarded.
func TestDamagedQueue(t *testing.T) {
	harness.SkipIfShort(t)
	seed := soak.Seed(t)
	left := leaveQueue(t)
	for i, d := range folderDamages() {
		t.Run(d.name, func(t *testing.T) {
			f := left.copyFor(t)
			before := f.requests(f.logs()...)
			d.do(f, rand.New(rand.NewPCG(seed, uint64(i))))
			want := before
			if d.unknown || d.whole {
				want = f.requests(f.logs()...)
			}
			hop := startCountingHop(t, false)
			agent := startFolderAgent(t, hop.addr, f.dataDir)
			fresh, _ := sendNumbered(t, agent, time.Minute, requestsLeft, 20)
			harness.AwaitQueue(t, agent, 0)
			counted := harness.Metrics(t, agent.AdminURL())[`tracing_queue_lost_batches_total{component="native"}`]
			account := exporterAccount(t, agent)

			have := hop.arrived()
			lost := missing(want, have)
			t.Logf("%d requests were queued, %d arrived, %d of them new; %v lost, %d reported", len(before), len(have),
				len(fresh), lost, lostBatches(agent))
			switch gone := len(before) - len(want); {
			case d.whole && lostBatches(agent) != gone, d.unknown && lostBatches(agent) > gone, len(lost) > d.flips:
				t.Errorf("%d requests are gone, %d were reported; %v of the others are lost", gone, lostBatches(agent), lost)
			case d.whole, d.unknown:
			case lostBatches(agent) != len(lost), len(lost) == 0 && d.flips > 0:
				t.Errorf("requests %v are lost after %d flipped bits, %d were reported", lost, d.flips, lostBatches(agent))
			}
			if int(counted) != lostBatches(agent) {
				t.Errorf("the metric counts %v lost requests, the log %d", counted, lostBatches(agent))
			}
			kept := f.damaged(d.noFolder)
			if !d.unknown && ((len(kept) > 0) != (len(lost) > 0) || len(kept) > len(lost)) {
				t.Errorf("%d damaged files are kept for %d lost requests", len(kept), len(lost))
			}
			if len(fresh) != 20 || len(missing(fresh, have)) > 0 {
				t.Errorf("of %d new requests %v did not arrive", len(fresh), missing(fresh, have))
			}
			if in := count(account, "in"); in != spansOfRequest*len(have) || count(account, "sent") != in {
				t.Errorf("%d requests arrived: %v", len(have), account)
			}
		})
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestQueueDamagedWhileRunning deletes or truncates files of the queue of a running agent. The
// agent knows what they contained, and counts every lost span.
func TestQueueDamagedWhileRunning(t *testing.T) {
	harness.SkipIfShort(t)
	left := leaveQueue(t)
	for _, c := range []struct {
		name string
		do   func(f *queueFolder)
	}{
		{"file deleted", func(f *queueFolder) { f.remove(f.logs()[1]) }},
		{"file truncated", func(f *queueFolder) { f.must(os.Truncate(f.logs()[2], 2<<20)) }},
		{"all files deleted", func(f *queueFolder) { f.remove(f.path("log")) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := left.copyFor(t)
			hop := startCountingHop(t, true)
			agent := startFolderAgent(t, hop.addr, f.dataDir)
			awaitRetries(t, agent)
			c.do(f)
			want := left.requests(left.logs()[0]) // the agent has read this file
			for number := range f.requests(f.logs()...) {
				want[number] = true
			}
			hop.setDown(false)
			fresh, _ := sendNumbered(t, agent, 20*time.Second, requestsLeft, 20)
			harness.AwaitQueue(t, agent, 0)
			account := exporterAccount(t, agent)

			have := hop.arrived()
			t.Logf("%d requests arrived, %d of them new: %v", len(have), len(fresh), account)
			if lost := slices.Concat(missing(want, have), missing(fresh, have)); len(lost) > 0 || len(fresh) != 20 {
				t.Errorf("requests %v are lost, %d new ones were accepted", lost, len(fresh))
			}
			gone := requestsLeft + len(fresh) - len(have)
			if gone == 0 || lostBatches(agent) != gone || count(account, "dropped") != spansOfRequest*gone {
				t.Errorf("%d requests are lost, %d were reported: %v", gone, lostBatches(agent), account)
			}
		})
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestQueueFolderMoved moves the folder of the queue of a running agent. The agent refuses spans,
// is not ready and does not create the folder. When the folder is back, all requests arrive.
func TestQueueFolderMoved(t *testing.T) {
	harness.SkipIfShort(t)
	f := leaveQueue(t).copyFor(t)
	hop := startCountingHop(t, true)
	agent := startFolderAgent(t, hop.addr, f.dataDir)
	awaitRetries(t, agent)
	moved := filepath.Join(t.TempDir(), "moved")
	f.must(os.Rename(f.path(""), moved))
	ready := func() (bool, string) {
		status, body := harness.Fetch(t, agent.AdminURL()+"/readyz")
		return status == http.StatusOK, string(body)
	}
	harness.Poll(t, "an agent that is not ready", func() bool { is, _ := ready(); return !is })
	const reason = "was moved, deleted or replaced while this process uses it; move the folder back, or restart"
	if _, text := ready(); !strings.Contains(text, reason) {
		t.Errorf("the agent is not ready because: %s", text)
	}
	if accepted, _ := sendNumbered(t, agent, 0, requestsLeft, 1); len(accepted) != 0 {
		t.Errorf("%d requests are accepted", len(accepted))
	}
	if _, err := os.Stat(f.path("")); !os.IsNotExist(err) {
		t.Errorf("the folder was recreated: %v", err)
	}
	f.must(os.Rename(moved, f.path("")))
	harness.Poll(t, "a ready agent", func() bool { is, _ := ready(); return is })
	hop.setDown(false)
	fresh, _ := sendNumbered(t, agent, 20*time.Second, requestsLeft+1, 20)
	harness.AwaitQueue(t, agent, 0)
	if have := hop.arrived(); len(fresh) != 20 || len(have) < requestsLeft+20 || lostBatches(agent) != 0 {
		t.Errorf("%d requests arrived, %d new ones were accepted, %d batches are lost", len(have), len(fresh), lostBatches(agent))
	}
	http.DefaultClient.CloseIdleConnections()
}

// awaitRetries waits until an agent has read the first file of its queue and is retrying to send
// it.
func awaitRetries(t *testing.T, agent *harness.Process) {
	t.Helper()
	harness.Poll(t, "retries", func() bool {
		return harness.Metrics(t, agent.AdminURL())[`tracing_exporter_retries_total{component="native"}`] > 0
	})
}
