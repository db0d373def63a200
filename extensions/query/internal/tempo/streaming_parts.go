package tempo

import (
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// partialDelay is the time after which a trace that was found is sent, although the search goes on.
const partialDelay = 200 * time.Millisecond

// parts sends the traces of a search as messages (see SearchResponse in package streaming of
// internal/wire) while the search runs. If all traces fit into one message, the last message has
// all; otherwise it has those that were not sent before. Clients ignore traces that they already
// have.
type parts struct {
	send   func(message []byte) error
	traces int // number of traces

	mu      sync.Mutex
	all     []byte      // encoded traces; the last ones if there are too many for one message
	cut     bool        // whether all lacks traces
	unsent  int         // position in all of the first trace that was not sent
	timer   *time.Timer // sends the unsent traces; nil if there are none
	stopped bool
	err     error // of send
}

// add adds a trace.
func (p *parts) add(m *match) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := len(p.all)
	p.all = m.appendProto(p.all, 1)
	p.traces++
	if len(p.all) > maxTraces {
		p.sendUnsent(before)
		p.all, p.unsent, p.cut = append(p.all[:0], p.all[before:]...), 0, true
	}
	if p.timer == nil {
		p.timer = time.AfterFunc(partialDelay, p.sendEarly)
	}
	return p.err
}

// maxTraces is the maximum number of bytes of the traces in a message. The rest is for metrics.
const maxTraces = maxMessage - 64

// sendEarly sends the unsent traces while the search runs.
func (p *parts) sendEarly() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = nil
	if !p.stopped {
		p.sendUnsent(len(p.all))
	}
}

// sendUnsent sends the unsent traces before a position in p.all.
func (p *parts) sendUnsent(end int) {
	if p.unsent < end && p.err == nil {
		p.err = p.send(appendMetrics(p.all[p.unsent:end:end], 0, 0))
	}
	p.unsent = end
}

// finish sends the last message.
func (p *parts) finish(scanned int) error {
	p.stop()
	last := p.all
	if p.cut {
		last = p.all[p.unsent:]
	}
	if p.err == nil {
		p.err = p.send(appendMetrics(last, scanned, 1))
	}
	return p.err
}

// stop ends sending. It may be called more than once.
func (p *parts) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

// appendMetrics appends SearchMetrics to a SearchResponse. A search is one job.
func appendMetrics(dst []byte, scanned, completed int) []byte {
	dst, at := protoenc.BeginMessage(dst, 2, 1)
	dst = protoenc.AppendUint(dst, 4, uint64(completed))
	dst = protoenc.AppendUint(dst, 5, 1)
	dst = protoenc.AppendUint(dst, 7, uint64(scanned))
	return protoenc.EndMessage(dst, at, 1)
}
