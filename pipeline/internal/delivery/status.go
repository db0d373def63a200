package delivery

import (
	"cmp"
	"slices"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/queueopt"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// Accounts returns the outcomes of all spans since the start, receivers first. The counters of
// receivers are read last, so that no component seems to have more spans than were received.
func (m *Metrics) Accounts() []status.Account {
	first, err := m.accounts()
	if err != nil {
		return nil // the counters are always valid
	}
	last, err := m.accounts()
	if err != nil {
		return nil
	}
	out := []status.Account{}
	for _, a := range last {
		i := slices.IndexFunc(first, func(b account) bool { return a.component == b.component })
		if a.outcomes[outcomeReceived] == 0 && i >= 0 {
			a = first[i]
		}
		out = append(out, a.status())
	}
	return out
}

// status returns the account as it is shown.
func (a account) status() status.Account {
	o := a.outcomes
	out := status.Account{Component: a.component.Name(), Kind: a.component.Kind, In: o[outcomeReceived] + o[outcomeIn],
		Accepted: o[outcomeAccepted], Sent: o[outcomeSent], Refused: o[outcomeRefused], Dropped: o[outcomeDropped], Lost: a.lost,
		Queued: o[outcomeQueued], Held: o[outcomeHeld], Reasons: append([]status.Outcome{}, a.reasons...),
		Branches: a.branches}
	out.Signal = signalName(a.component)
	status.SortReasons(out.Reasons)
	return out
}

// signalName returns the signal of an edge as it is shown: "" for spans.
func signalName(c Component) string {
	if c.Signal == otlpdata.SignalTraces {
		return ""
	}
	return c.Signal.String()
}

// Queues returns the state of all sending queues. config returns the settings of the queue of an
// edge by its Name.
func (m *Metrics) Queues(config func(name string) pipeline.QueueConfig) []status.Queue {
	out := []status.Queue{}
	for c, s := range m.queues.states() {
		o := config(c.Name())
		q := status.Queue{Component: c.Name(), Storage: "memory", Overflow: o.Overflow, Spans: s.spans, Bytes: s.bytes,
			MaxBytes: int64(o.MaxBytes), Size: s.size, MaxSize: o.QueueSize, Sizer: o.Sizer, Waiting: s.requests}
		q.Signal = signalName(c)
		if o.Storage == queueopt.StorageDisk {
			q.Storage = queueopt.StorageDisk
		}
		if !s.oldest.IsZero() {
			q.Age = max(m.now().Sub(s.oldest), 0) // the clock may be set back
		}
		out = append(out, q)
	}
	slices.SortFunc(out, func(a, b status.Queue) int { return cmp.Compare(a.Component, b.Component) })
	return out
}
