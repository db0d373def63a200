package storequery

import (
	"container/heap"
	"context"
	"slices"
	"unsafe"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// keptState is the state that a search by candidates keeps between steps.
type keptState struct {
	known        map[otlpdata.TraceID]struct{} // traces that were examined, see remember
	pending      resultHeap                    // results that a later candidate may precede
	pendingBytes int                           // of the spans of pending results
	tries        int                           // candidates examined
	narrowTried  bool
	rareKnown    bool
	rare         []tracestore.TraceRef // if rareKnown: traces with a rare condition, see narrow
	held         *tracestore.Memory    // for all this
}

// Limits on what is kept.
const (
	// maxPendingBytes is the maximum size of the spans of pending results. The spans of further
	// results are reread.
	maxPendingBytes = 8 << 20
	// After maxKnown traces, only results and long traces are remembered.
	maxKnown = 1 << 16
	// longTrace is the number of spans from which a trace is always remembered. The budget of a
	// search limits the number of such traces.
	longTrace = 1 << 10
	// minDropped is the minimum number of pending results that addPending drops together.
	minDropped = 64
)

// Approximate sizes in bytes.
const (
	pendingMemory = 512 // a pending result with a summary, without its spans
	knownMemory   = 64  // a known trace
	rareMemory    = int(unsafe.Sizeof(tracestore.TraceRef{}))
)

// begin begins a step.
func (k *keptState) begin(ctx context.Context) {
	if k.known == nil {
		k.known = make(map[otlpdata.TraceID]struct{})
		k.held, _ = tracestore.Reserve(ctx, 0) // cannot fail: it reserves 0 bytes
	}
}

// reserve reserves the memory of the state.
func (k *keptState) reserve() error {
	return k.held.Resize(int64(k.pendingBytes + pendingMemory*len(k.pending) + knownMemory*len(k.known) + rareMemory*len(k.rare)))
}

// remember makes a trace known, so that it is not reexamined. Results must be known, or they would
// be found twice; for other traces it only saves work.
func (k *keptState) remember(id otlpdata.TraceID, spans int, isResult bool) {
	if isResult || spans >= longTrace || len(k.known) < maxKnown {
		k.known[id] = struct{}{}
	}
}

// addPending adds a result to the pending ones, without its spans if they exceed maxPendingBytes.
// It drops results that come after the limit; a later step with another limit examines them again.
func (k *keptState) addPending(r tracestore.Result, limit, emitted int) {
	if r.Spans != nil {
		if k.pendingBytes+r.Spans.Size() > maxPendingBytes && len(k.pending) > 0 {
			r.Spans = nil
		} else {
			k.pendingBytes += r.Spans.Size()
		}
	}
	heap.Push(&k.pending, r)
	left := limit - emitted
	if limit <= 0 || len(k.pending) < 2*left+minDropped {
		return
	}
	slices.SortFunc(k.pending, compareResults)
	for i, r := range k.pending[left:] {
		if r.Spans != nil {
			k.pendingBytes -= r.Spans.Size()
		}
		delete(k.known, r.ID)
		k.pending[left+i] = tracestore.Result{}
	}
	k.pending = k.pending[:left]
}

// resultHeap is a heap with the newest result on top.
type resultHeap []tracestore.Result

func (h resultHeap) Len() int           { return len(h) }
func (h resultHeap) Less(i, j int) bool { return compareResults(h[i], h[j]) < 0 }
func (h resultHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *resultHeap) Push(x any)        { *h = append(*h, x.(tracestore.Result)) }

func (h *resultHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = tracestore.Result{}
	*h = (*h)[:last]
	return x
}
