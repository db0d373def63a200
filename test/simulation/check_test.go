package simulation_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/test/harness"
)

// readerAddr is the address of the machine from which stores are read.
const readerAddr = "10.0.9.1"

// check compares the spans that were sent with those in the stores, and checks that the counters of
// every program balance. Spans may be missing only if a full queue dropped and counted them, or if
// they were in the memory of an agent that crashed.
func (w *world) check() {
	have := make(map[uint64]int) // stores that have a span
	for _, n := range w.collectors {
		for number, times := range w.read(n) {
			if times != 1 {
				w.t.Errorf("%s has span %d %d times", n.name, number, times)
			}
			have[number]++
		}
	}
	for _, l := range w.processes {
		if !l.node.inMemory || !l.crashed.Load() { // crashed agents without a disk queue guarantee nothing
			w.result.Dropped += int(account(l.app).dropped)
		}
	}
	var lost []uint64
	for number := uint64(1); number <= w.sent.last; number++ {
		if have[number] == 0 && w.promised(number) {
			lost = append(lost, number)
		}
	}
	if len(lost) > w.result.Dropped {
		w.t.Errorf("%d acknowledged spans are lost: %v", len(lost), lost)
	}
	w.result.Sent, w.result.Acked = int(w.sent.last), len(w.sent.acked)
	for number, stores := range have {
		if number > w.sent.last {
			w.t.Errorf("span %d was never sent", number)
		}
		w.result.Found++
		w.result.Twice += stores - 1
	}
	for _, n := range w.nodes() {
		n.checkAccount(n.account(), false)
		if log := n.log.String(); strings.Contains(log, "BUG") {
			w.t.Errorf("%s logged a bug", n.name)
		}
	}
}

// promised reports whether a span must be in a store.
func (w *world) promised(number uint64) bool {
	by, acked := w.sent.acked[number]
	switch {
	case w.plan.reloadsOnly: // datagrams do not get lost either
		return true
	case acked && by.node.inMemory && by.crashed():
		w.result.Unpromised++
		return false
	}
	return acked
}

// read returns how often each span occurs in the store of a collector.
func (w *world) read(n *node) map[uint64]int {
	host := w.net.Host(readerAddr)
	defer host.Kill()
	transport := &http.Transport{DialContext: host.Dial, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	url := fmt.Sprintf("http://%s:16686/api/traces?service=%s&limit=10000&start=0&end=%d", n.addr, simulatedService,
		time.Now().Add(time.Hour).UnixMicro())
	resp, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Get(url)
	if err != nil {
		w.t.Errorf("reading %s: %v", n.name, err)
		return nil
	}
	defer resp.Body.Close()
	var answer struct {
		Data   []harness.UITrace
		Errors []any
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK || len(answer.Errors) > 0 {
		w.t.Errorf("reading %s: %s, %v, %v", n.name, resp.Status, answer.Errors, err)
	}
	times := make(map[uint64]int)
	for _, trace := range answer.Data {
		for _, s := range trace.Spans {
			times[w.number(n, s)]++
		}
	}
	return times
}

// number returns the number of a span, and checks its name and tags.
func (w *world) number(n *node, s harness.UISpan) uint64 {
	number, err := strconv.ParseUint(s.SpanID, 16, 64)
	want := fmt.Sprint("number:int64=", number)
	if err != nil || s.OperationName != fmt.Sprint("op", number%7) || !slices.Contains(harness.TagStrings(s.Tags), want) {
		w.t.Errorf("%s has a span that differs from the one sent: %+v", n.name, s)
	}
	return number
}

// accounts are the sums of the span counters of a program.
type accounts struct {
	received, accepted, refusedByReceivers float64
	in, sent, refused, dropped, queued     float64
}

// account returns the accounts of a node's program, or zeros if it is down.
func (n *node) account() accounts {
	n.mu.Lock()
	l := n.current
	n.mu.Unlock()
	if l == nil {
		return accounts{}
	}
	return account(l.app)
}

func account(app *app.App) (a accounts) {
	families, err := app.Gatherer().Gather()
	if err != nil {
		return accounts{received: -1} // never balances
	}
	for _, f := range families {
		for _, m := range f.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			switch f.GetName() {
			case "tracing_pipeline_spans_total":
				a.add(labels["kind"], labels["outcome"], m.GetCounter().GetValue())
			case "tracing_queue_spans":
				a.queued += m.GetGauge().GetValue()
			}
		}
	}
	return a
}

func (a *accounts) add(kind, outcome string, v float64) {
	switch kind + " " + outcome {
	case "receiver received":
		a.received += v
	case "receiver accepted":
		a.accepted += v
	case "receiver refused":
		a.refusedByReceivers += v
	case "exporter in":
		a.in += v
	case "exporter sent":
		a.sent += v
	case "exporter refused":
		a.refused += v
	case "exporter dropped":
		a.dropped += v
	}
}

// checkAccount checks that accounts balance. No request may be in flight.
func (n *node) checkAccount(a accounts, mayDrop bool) {
	if a.received != a.accepted+a.refusedByReceivers || a.in != a.sent+a.refused+a.dropped+a.queued {
		n.w.t.Errorf("accounts of %s do not balance: %+v", n.name, a)
	}
	if a.dropped > 0 && n.w.plan.overflow != "drop_oldest" && !mayDrop {
		n.w.t.Errorf("%s dropped spans: %+v", n.name, a)
	}
	if n.w.plan.reloadsOnly && a.refusedByReceivers+a.dropped > 0 {
		n.w.t.Errorf("%s refused or dropped spans in a scenario with reloads only: %+v", n.name, a)
	}
}
