package delivery

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// maxRefusalText is the maximum length of the text of a refusal in bytes.
const maxRefusalText = 500

// Received counts what a receiver receives, by transport. It is safe for concurrent use.
type Received struct {
	component string
	now       func() time.Time

	mu         sync.Mutex
	transports map[string]*status.Receiver
}

// Received returns the counters of a receiver. They outlive the receiver.
func (m *Metrics) Received(c Component) *Received {
	m.receivedMu.Lock()
	defer m.receivedMu.Unlock()
	r := m.received[c]
	if r == nil {
		r = &Received{component: c.ID, now: m.now, transports: map[string]*status.Receiver{}}
		m.received[c] = r
	}
	return r
}

// of returns the counters of a transport. The caller holds mu.
func (r *Received) of(transport string) *status.Receiver {
	t := r.transports[transport]
	if t == nil {
		t = &status.Receiver{Component: r.component, Transport: transport}
		r.transports[transport] = t
	}
	return t
}

// receive counts spans that were offered.
func (r *Received) receive(transport string, spans int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(transport).Received += uint64(spans)
}

// refuse counts spans that were refused with an error.
func (r *Received) refuse(transport string, spans int, err error) {
	if spans == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.of(transport)
	t.Refused += uint64(spans)
	t.Refusal = r.refusal(err.Error())
}

// RefuseRequests counts n requests or datagrams that were refused before their spans were read.
func (r *Received) RefuseRequests(transport, reason string, n int) {
	if n == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.of(transport)
	t.RefusedRequests += uint64(n)
	t.Refusal = r.refusal(reason)
}

func (r *Received) refusal(reason string) *status.Refusal {
	if len(reason) > maxRefusalText {
		reason = reason[:maxRefusalText]
	}
	return &status.Refusal{Reason: strings.ToValidUTF8(reason, "\uFFFD"), At: r.now()}
}

// Receivers returns the counters by transport, with the addresses of open listeners.
func (r *Received) Receivers(open []status.Listener) []status.Receiver {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]status.Receiver{}
	for transport, t := range r.transports {
		out[transport] = *t
	}
	for _, l := range open {
		t, ok := out[l.Transport]
		if !ok {
			t = status.Receiver{Component: r.component, Transport: l.Transport}
		}
		t.Addresses = append(t.Addresses, l.Address)
		slices.Sort(t.Addresses)
		out[l.Transport] = t
	}
	list := make([]status.Receiver, 0, len(out))
	for _, transport := range slices.Sorted(maps.Keys(out)) {
		list = append(list, out[transport])
	}
	return list
}

// Dropped returns the number of acknowledged spans that sending queues and processors lost.
func (m *Metrics) Dropped() (spans uint64) {
	all, err := m.accounts()
	if err != nil {
		return 0 // the counters are always valid
	}
	for _, a := range all {
		if a.component.Signal == otlpdata.SignalTraces {
			spans += uint64(a.lost)
		}
	}
	return spans
}
