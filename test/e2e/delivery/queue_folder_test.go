package delivery_test

import (
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
)

// folderDamage is something bad that happens to the folder of a queue.
type folderDamage struct {
	name    string
	do      func(f *queueFolder, rnd *rand.Rand)
	flips   int  // bits that were changed; files are whole otherwise
	noPlace bool // nothing can be set aside
	// untold: where whole records end, or a file is gone, nothing in other files says that there were more.
	untold bool
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
		{name: "no place for damaged files", flips: 1, noPlace: true, do: func(f *queueFolder, _ *rand.Rand) {
			f.overwrite(f.logs()[0], 20, []byte{255})
			f.write("damaged", nil)
		}},
		{name: "first file deleted", untold: true, do: remove(func(f *queueFolder) string { return f.logs()[0] })},
		{name: "middle file deleted", untold: true, do: remove(func(f *queueFolder) string { return f.logs()[1] })},
		{name: "last file deleted", untold: true, do: remove(func(f *queueFolder) string { return f.logs()[len(f.logs())-1] })},
		{name: "LOCK deleted", do: remove(func(f *queueFolder) string { return f.path("LOCK") })},
		{name: "folder deleted", untold: true, do: remove(func(f *queueFolder) string { return f.path("") })},
		{name: "truncated and empty files", untold: true, do: func(f *queueFolder, _ *rand.Rand) {
			logs := f.logs()
			f.must(os.Truncate(logs[0], 10<<20))
			f.must(os.Truncate(logs[1], 0))
			f.must(os.Truncate(logs[2], 40)) // a header without its payload
		}},
		{name: "foreign files", do: (*queueFolder).addForeign},
	}
}

// addForeign adds what has never been a file of a queue, under names that a queue uses, too.
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

// An agent that was killed with a long queue starts again whatever has happened to the queue's folder: what is sound arrives, what is not is
// told and set aside, and spans go through again.
func TestDamagedQueue(t *testing.T) {
	harness.SkipShort(t)
	seed := harness.FromEnv(t, killSeed, uint64(time.Now().UnixNano()))
	t.Logf("%s=%d", killSeed, seed)
	left := leaveQueue(t)
	last := map[int]bool{} // nothing behind them says that they were durable: they could be writes that the kill cut short
	for _, name := range left.logs() {
		last[slices.Max(slices.Collect(maps.Keys(left.held(name))))] = true
	}
	for i, d := range folderDamages() {
		t.Run(d.name, func(t *testing.T) {
			f := left.copyFor(t)
			before := f.held(f.logs()...)
			d.do(f, rand.New(rand.NewPCG(seed, uint64(i))))
			want := before
			if d.untold {
				want = f.held(f.logs()...)
			}
			hop := startCountingHop(t, false)
			agent := startFolderAgent(t, hop.addr, f.dataDir)
			fresh, _ := sendNumbered(t, agent, time.Minute, requestsLeft, 20)
			harness.AwaitBacklog(t, agent, 0)
			counted := harness.Metrics(t, "http://"+agent.Address("admin", "http"))[`tracing_queue_lost_batches_total{component="native"}`]
			account := exporterAccount(t, agent)

			have := hop.arrived()
			lost := missing(want, have)
			told := slices.DeleteFunc(slices.Clone(lost), func(n int) bool { return last[n] })
			t.Logf("%d requests were left, %d arrived, %d of them new; %v lost, %d told", len(before), len(have), len(fresh), lost, lostBatches(agent))
			if lostBatches(agent) != len(told) || len(lost) > d.flips || len(told) == 0 && d.flips > 0 {
				t.Errorf("requests %v are lost after %d flipped bits, %d were told", lost, d.flips, lostBatches(agent))
			}
			if int(counted) != lostBatches(agent) {
				t.Errorf("metrics count %v lost requests, the log %d", counted, lostBatches(agent))
			}
			if kept := f.kept(d.noPlace); (len(kept) > 0) != (len(told) > 0) || len(kept) > len(told) {
				t.Errorf("%d damaged files are kept", len(kept))
			}
			if len(fresh) != 20 || len(missing(fresh, have)) > 0 {
				t.Errorf("of %d new requests %v did not arrive", len(fresh), missing(fresh, have))
			}
			if in := number(account, "in"); in != spansOfRequest*len(have) || number(account, "sent") != in {
				t.Errorf("%d requests arrived: %v", len(have), account)
			}
		})
	}
	http.DefaultClient.CloseIdleConnections()
}

// While the agent runs, it knows what is in files that it has yet to read: what does not come out of them is counted, span by span.
func TestQueueDamagedWhileRunning(t *testing.T) {
	harness.SkipShort(t)
	left := leaveQueue(t)
	for _, c := range []struct {
		name string
		do   func(f *queueFolder)
	}{
		{"file deleted", func(f *queueFolder) { f.remove(f.logs()[1]) }},
		{"file truncated", func(f *queueFolder) { f.must(os.Truncate(f.logs()[2], 2<<20)) }},
		{"all files deleted", func(f *queueFolder) { f.remove(f.path("log")) }},
		{"folder deleted", func(f *queueFolder) { f.remove(f.path("")) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := left.copyFor(t)
			hop := startCountingHop(t, true)
			agent := startFolderAgent(t, hop.addr, f.dataDir)
			awaitRetries(t, agent)
			c.do(f)
			want := left.held(left.logs()[0]) // is in memory
			for number := range f.held(f.logs()...) {
				want[number] = true
			}
			hop.setAway(false)
			fresh, _ := sendNumbered(t, agent, 20*time.Second, requestsLeft, 20)
			harness.AwaitBacklog(t, agent, 0)
			account := exporterAccount(t, agent)

			have := hop.arrived()
			t.Logf("%d requests arrived, %d of them new: %v", len(have), len(fresh), account)
			if lost := slices.Concat(missing(want, have), missing(fresh, have)); len(lost) > 0 || len(fresh) != 20 {
				t.Errorf("requests %v are lost; %d new ones were taken", lost, len(fresh))
			}
			gone := requestsLeft + len(fresh) - len(have)
			if gone == 0 || lostBatches(agent) != gone || number(account, "dropped") != spansOfRequest*gone {
				t.Errorf("%d requests are gone, %d are told: %v", gone, lostBatches(agent), account)
			}
		})
	}
	http.DefaultClient.CloseIdleConnections()
}

// awaitRetries waits until an agent has read the first file of its queue.
func awaitRetries(t *testing.T, agent *harness.Process) {
	t.Helper()
	for harness.Metrics(t, "http://"+agent.Address("admin", "http"))[`tracing_exporter_retries_total{component="native"}`] == 0 {
		time.Sleep(10 * time.Millisecond)
	}
}
