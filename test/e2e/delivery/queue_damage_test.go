package delivery_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/harness"
)

// TestDamagedQueueFile damages one file of the queue of a killed agent in a random way. The agent
// starts every time. It forwards the intact requests as they were, each once, and new ones. The
// log, the metric and the status report what is lost.
func TestDamagedQueueFile(t *testing.T) {
	harness.SkipIfShort(t)
	rounds, seed := soak.Rounds(t, 8, 8), soak.Seed(t)
	left := leaveQueue(t)
	kinds := map[string]int{}
	for round := range rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			f := left.copyFor(t)
			before, names := f.requests(f.logs()...), append(f.logs(), f.path("log/logs.list"))
			rnd := rand.New(rand.NewPCG(seed, uint64(round)))
			name := names[rnd.IntN(len(names))]
			what := damageFile(t, rnd, name)
			kind := strings.Fields(what)[0]
			kinds[kind]++
			t.Logf("%s: %s", filepath.Base(name), what)
			checkDamagedQueue(t, f, before, kind == "flipped")
		})
	}
	t.Logf("kinds of damage: %v", kinds)
	http.DefaultClient.CloseIdleConnections()
}

// checkDamagedQueue starts an agent with a damaged queue that had the given requests before. All is
// known about the loss if exact is set.
func checkDamagedQueue(t *testing.T, f *queueFolder, before map[int]bool, exact bool) {
	t.Helper()
	whole := f.requests(f.logs()...) // with their ends: only what was damaged of these may be lost
	hop := startCountingHop(t, false)
	agent := startFolderAgent(t, hop.addr, f.dataDir)
	fresh, _ := sendNumbered(t, agent, time.Minute, requestsLeft, 20)
	harness.AwaitQueue(t, agent, 0)
	counted := int(harness.Metrics(t, agent.AdminURL())[`tracing_queue_lost_batches_total{component="native"}`])
	have := hop.arrived()
	lost, damaged := missing(before, have), missing(whole, have)
	degraded := isDegraded(t, agent)
	account := exporterAccount(t, agent)
	checkPanics(t, agent)

	reported := lostBatches(agent)
	t.Logf("%d of %d requests lost, %d reported, %d counted, degraded: %v", len(lost), len(before), reported, counted, degraded)
	if len(lost) > 0 && reported == 0 || reported > max(len(lost), 1) || exact && reported != len(lost) || counted != reported {
		t.Errorf("requests %v are lost, %d were reported, %d counted", lost, reported, counted)
	}
	if degraded != (reported > 0) {
		t.Errorf("%d lost requests are reported, the status is degraded: %v", reported, degraded)
	}
	if len(damaged) > 2 {
		t.Errorf("requests %v are lost, which the file has", damaged)
	}
	if list := hop.problems(); len(list) > 0 {
		t.Errorf("wrong spans arrived: %v", list)
	}
	if len(fresh) != 20 || len(missing(fresh, have)) > 0 {
		t.Errorf("of %d new requests %v did not arrive", len(fresh), missing(fresh, have))
	}
	if in := count(account, "in"); in != spansOfRequest*len(have) || count(account, "sent") != in {
		t.Errorf("%d requests arrived: %v", len(have), account)
	}
}
