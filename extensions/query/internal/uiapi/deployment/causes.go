package deployment

import (
	"slices"
	"time"

	"github.com/tracing-backend/tracing/pipeline/sampling"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// cause is a possible reason, other than sampling, why a trace is missing.
type cause struct {
	Code      string `json:"code"`
	Process   int    `json:"process"` // index, or -1 for all processes
	Component string `json:"component,omitempty"`
	Spans     int64  `json:"spans,omitempty"`
	Requests  int64  `json:"requests,omitempty"`
	// At is when it happened last, or since when.
	At     time.Time `json:"at,omitzero"`
	Reason string    `json:"reason,omitempty"` // of the component
	// Duration is how long spans are held or stored, in nanoseconds.
	Duration int64 `json:"duration,omitempty"`
}

// Codes of causes, in the order in which they are listed.
const (
	causeOtherService = "other_service" // the trace is stored, without spans of the service
	causeNoSpans      = "no_spans"      // no process received any span
	causeUnknown      = "unknown"       // no span of the service is stored
	causeNoAnswer     = "no_answer"     // a process did not respond, so this list is incomplete
	causeRefused      = "refused"       // a receiver refused spans or requests
	causeLost         = "lost"          // a component dropped spans that it had accepted
	causeHeld         = "held"          // a processor holds spans until it decides
	causeQueued       = "queued"        // spans wait in a sending queue
	causeExpired      = "expired"       // the store deletes old spans
	causeTenant       = "tenant"        // spans of other tenants are not found
)

// causes lists the possible reasons why the trace is missing, or none if it is stored as expected.
func (out *explainAnswer) causes(processes []process[status.Details], tenancy bool) []cause {
	all := []cause{}
	add := func(c cause) { all = append(all, c) }
	if out.Verdict == "stored" {
		services := out.Stored.Services
		if out.Service != "" && len(services) > 0 && len(services) < maxShown && !slices.Contains(services, out.Service) {
			add(cause{Code: causeOtherService, Process: -1, Spans: int64(out.Stored.Spans)})
		}
		return all
	}
	received, known := uint64(0), true
	for i, p := range processes {
		if p.Data == nil {
			known = false
			add(cause{Code: causeNoAnswer, Process: i, Reason: p.Error})
			continue
		}
		for _, r := range p.Data.Intake.Receivers {
			received += r.Received
		}
	}
	switch {
	case known && received == 0 && !tenancy:
		add(cause{Code: causeNoSpans, Process: -1})
	case out.Stored.Service == "unknown":
		add(cause{Code: causeUnknown, Process: -1})
	}
	for i, p := range processes {
		if p.Data != nil && !tenancy {
			all = append(all, ofProcess(i, p.Data, out.waits())...)
		}
	}
	all = append(all, expiries(processes, tenancy)...)
	if tenancy {
		add(cause{Code: causeTenant, Process: -1})
	}
	return all
}

// waits returns how long processors hold spans, by component.
func (out *explainAnswer) waits() map[string]int64 {
	waits := map[string]int64{}
	for _, p := range out.Processes {
		if p.Data == nil {
			continue
		}
		for _, s := range p.Data.Stages {
			if s.Method == sampling.MethodPolicies {
				waits[s.Component] = s.Wait
			}
		}
	}
	return waits
}

// ofProcess returns causes for the spans that a process refused, lost, holds and queues.
func ofProcess(index int, d *status.Details, waits map[string]int64) (all []cause) {
	for _, r := range d.Intake.Receivers {
		if r.Refused == 0 && r.RefusedRequests == 0 {
			continue
		}
		c := cause{Code: causeRefused, Process: index, Component: r.Component, Spans: int64(r.Refused), Requests: int64(r.RefusedRequests)}
		if r.Refusal != nil {
			c.At, c.Reason = r.Refusal.At, r.Refusal.Reason
		}
		all = append(all, c)
	}
	for _, a := range d.Accounts {
		if a.Lost > 0 && a.Signal == "" {
			c := cause{Code: causeLost, Process: index, Component: a.Component, Spans: a.Lost}
			for _, o := range a.Reasons {
				if o.Outcome == "dropped" && o.Reason != "policy" {
					c.Reason = o.Reason
					break
				}
			}
			all = append(all, c)
		}
	}
	for _, a := range d.Accounts {
		if a.Held > 0 {
			all = append(all, cause{Code: causeHeld, Process: index, Component: a.Component, Spans: a.Held, Duration: waits[a.Component]})
		}
	}
	for _, q := range d.Queues {
		if q.Spans > 0 && q.Signal == "" {
			all = append(all, cause{Code: causeQueued, Process: index, Component: q.Component, Spans: q.Spans, Duration: q.Age.Nanoseconds()})
		}
	}
	return all
}

// expiries returns the stores that delete spans by age or size. With tenants, the age of stored
// spans is left out.
func expiries(processes []process[status.Details], tenancy bool) (all []cause) {
	for i, p := range processes {
		if p.Data == nil {
			continue
		}
		for _, s := range p.Data.Stores {
			if s.Retention > 0 || s.MaxBytes > 0 {
				c := cause{Code: causeExpired, Process: i, Component: s.Component, Duration: s.Retention.Nanoseconds()}
				if !tenancy {
					c.At = s.Oldest
				}
				all = append(all, c)
			}
		}
	}
	return all
}
