package delivery

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/errclass"
)

// Outcomes of tracing_pipeline_spans_total and tracing_pipeline_log_records_total.
const (
	outcomeReceived = "received" // receivers: offered
	outcomeAccepted = "accepted" // receivers: acknowledged to the client
	outcomeIn       = "in"       // processors, connectors and exporters: offered
	outcomeSent     = "sent"     // processors and connectors: passed on; exporters: stored, or accepted by the next hop
	outcomeRefused  = "refused"  // returned to the caller with an error
	outcomeDropped  = "dropped"  // discarded on purpose, or after they were queued or held
	outcomeHeld     = "held"     // processors: accepted and not passed on yet; /metrics has a separate gauge
	outcomeQueued   = "queued"   // exporters: in a queue now; /metrics has a separate gauge
)

// outcomes counts the spans or log records of one edge.
type outcomes struct {
	vec       *prometheus.CounterVec
	component Component
	in, out   prometheus.Counter
}

func newOutcomes(m *Metrics, c Component, in, out string) outcomes {
	vec := m.items[c.Signal]
	return outcomes{vec: vec, component: c, in: vec.WithLabelValues(c.ID, c.Kind, in, ""), out: vec.WithLabelValues(c.ID, c.Kind, out, "")}
}

// settle counts the outcome of n spans that were counted as `in`: once nothing is in flight, the
// counters of a component balance. Spans that failed with err count as bad; settle returns their
// number.
func (o *outcomes) settle(n int, err error, bad string) int {
	failed := o.fail(n, err, bad)
	o.out.Add(float64(n - failed))
	return failed
}

// fail counts how many of n spans failed with err, and returns this number.
func (o *outcomes) fail(n int, err error, bad string) int {
	if err == nil {
		return 0
	}
	failed := rejected(n, err)
	var p *pipeline.Partial
	var u *unfinished
	if bad == outcomeDropped && !errors.As(err, &p) && errors.As(err, &u) { // no caller resends the accepted part
		failed = max(0, n-u.accepted)
	}
	o.add(bad, reason(err), failed)
	return failed
}

// rejected returns the number of n spans that failed with err, which may be a partial success.
func rejected(n int, err error) int {
	if err == nil {
		return 0
	}
	var p *pipeline.Partial
	if errors.As(err, &p) {
		return max(0, min(p.Rejected, n))
	}
	return n
}

// add counts n spans with an outcome that has a reason.
func (o *outcomes) add(outcome, reason string, n int) {
	o.vec.WithLabelValues(o.component.ID, o.component.Kind, outcome, reason).Add(float64(n))
}

// reason returns the value of the label reason for an error. It depends on the class of the error,
// not on its text.
func reason(err error) string {
	var partial *pipeline.Partial
	switch c := errclass.Of(err); {
	case errors.Is(err, pipeline.ErrOverBudget), errors.Is(err, pipeline.ErrHeldMemory):
		return "over_budget"
	case errors.Is(err, pipeline.ErrStopping):
		return "stopping"
	case errors.Is(err, errclass.ErrInternal):
		return "bug"
	case errors.Is(err, errEvicted):
		return "overflow"
	case c.Code == codes.Canceled:
		return "canceled"
	case c.Code == codes.DeadlineExceeded, errors.Is(err, context.DeadlineExceeded):
		return "deadline"
	case c.TooLarge:
		return "too_large"
	case c.Permanent(), errors.As(err, &partial): // spans rejected by a partial success are not retried
		return "permanent"
	case c.Code == codes.ResourceExhausted:
		return "overloaded"
	}
	return "unavailable"
}
