// Package status describes the state of a running process: whether it is ready, the state of each
// pipeline and component, and which configuration it runs.
package status

import (
	"net/http"
	"slices"
	"time"
)

// Build identifies the program: its version, the commit that it was built from, and when.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Date    string `json:"date"`
}

// Health says whether the process is ready.
type Health struct {
	Ready  bool
	Since  time.Time // when all components had started; zero while the process starts or stops
	Reason string    // why a component makes the process not ready; "" if it is ready, starting or stopping
}

// HealthAnswer is the JSON body of the response to a health check.
type HealthAnswer struct {
	Status  string    `json:"status"`
	UpSince time.Time `json:"upSince"`
	Uptime  string    `json:"uptime"`
}

// Answer returns the HTTP status code and the body of the response to a health check: 200 while the
// process runs, even if a component makes it not ready, because the component recovers without a
// restart.
func (h Health) Answer(now time.Time) (code int, body HealthAnswer) {
	if h.Since.IsZero() {
		return http.StatusServiceUnavailable, HealthAnswer{Status: "Server not available"}
	}
	return http.StatusOK, HealthAnswer{Status: "Server available", UpSince: h.Since, Uptime: now.Sub(h.Since).String()}
}

// State is the state of a component, a pipeline or the process.
type State string

// States, from best to worst.
const (
	OK       State = "ok"
	Degraded State = "degraded" // works only partly, or not at all at the moment; Reason says why
	Starting State = "starting"
	Stopped  State = "stopped"
)

// Worse returns the worse of two states.
func Worse(a, b State) State {
	order := []State{OK, Degraded, Starting, Stopped}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// Report is the state of the process and its parts. The state of a whole is the worst state of its
// parts.
type Report struct {
	State     State       `json:"status"`
	Pipelines []Pipeline  `json:"pipelines"`
	Beside    []Component `json:"beside"` // components outside of pipelines

	Configuration Reload `json:"configuration"`
}

// Pipeline is the state of one pipeline.
type Pipeline struct {
	Pipeline   string      `json:"pipeline"`
	State      State       `json:"status"`
	Components []Component `json:"components"` // in the order that spans pass them
}

// Component is the state of one component instance.
type Component struct {
	Component string    `json:"component"`
	Kind      string    `json:"kind"`
	Role      string    `json:"role,omitempty"` // of a connector in the pipeline: receiver or exporter
	State     State     `json:"status"`
	Reason    string    `json:"reason,omitempty"` // why the component is degraded
	Since     time.Time `json:"since"`            // when the component entered this state
	Held      int64     `json:"held,omitempty"`   // spans that a processor has acknowledged and not passed on yet
}

// Reload says which configuration runs, and why the latest reload failed.
type Reload struct {
	Since        time.Time  `json:"since"`                   // when the running configuration was applied
	Reloads      int        `json:"reloads"`                 // number of configurations applied after the start
	Problem      string     `json:"problem,omitempty"`       // why the latest reload failed
	ProblemSince *time.Time `json:"problem_since,omitempty"` // when it failed
}
