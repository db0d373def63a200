package pipeline

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/status"
)

// Process gives components access to the state of the process that they run in.
type Process interface {
	// Health says whether the process is ready: from the moment that all components have started
	// until the process begins to stop, except while a component reports a reason marked with
	// [NotReady].
	Health() status.Health
	// Gatherer returns all metrics of the process.
	Gatherer() prometheus.Gatherer
	// Build identifies the program.
	Build() status.Build
	// Status returns the state of every component.
	Status() status.Report
	// Intake returns the state of what the receivers received.
	Intake() status.Intake
	// Details returns the state of the process that operators see.
	Details(ctx context.Context) status.Details
	// Components returns the running components.
	Components() []Running
	// LogLevel returns the log level of the process, which can be changed at any time.
	LogLevel() zap.AtomicLevel
	// AdminHandler returns the routes of a running component that is [Administered], or nil.
	AdminHandler(kind Kind, id ID) http.Handler
}

// Running is a running component.
type Running struct {
	Kind      Kind
	ID        ID
	Pipelines []string // that the instance is part of, in the order of the configuration
	Component any
}

// Observer is implemented by extensions that show the state of the process, such as `admin`.
// Observers are started first, when the process is not ready yet, and stopped last, when the
// counters of spans are final.
type Observer interface {
	Starter
	ObservesProcess()
}

// Administered is implemented by components with HTTP routes for operators. While the component
// runs, the admin extension serves them below /receivers/ID/, /exporters/ID/ or /extensions/ID/; it
// strips this prefix before it calls the handler.
type Administered interface {
	AdminHandler() http.Handler
}

// Addressed is implemented by components that listen. Addr returns the address of the named
// listener (`grpc`, `http`), or "" if there is no such listener or it is not started. Tests use it
// to find the port after configuring port 0.
type Addressed interface {
	Addr(listener string) string
}

// Listening is implemented by components that tell users where they listen.
type Listening interface {
	// OpenListeners returns the open listeners, in any order.
	OpenListeners() []status.Listener
}

// MemoryUser is implemented by components that hold memory in addition to requests in flight.
type MemoryUser interface {
	// MaxMemory returns the maximum that the component may hold, in bytes.
	MaxMemory() int64
}

// Querier is implemented by components that run queries of users or client programs. If there is
// one, a part of the memory of the process is for queries (service.limits.query_memory).
type Querier interface {
	// QueryMemory returns the value in bytes of the component's own deprecated key for
	// service.limits.query_memory, or 0.
	QueryMemory() int64
}
