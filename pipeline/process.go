package pipeline

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// Process is what a component may know of the process it runs in.
type Process interface {
	// Health tells whether the process takes work: after everything has started and until it begins to stop.
	Health() Health
	// Gatherer collects all metrics of the process.
	Gatherer() prometheus.Gatherer
	// Build says which program this is.
	Build() Build
	// Status tells the state of every component.
	Status() Status
	// LogLevel is the level of the process's log, which can be changed while it runs.
	LogLevel() zap.AtomicLevel
	// AdminHandler returns the routes of a running component that is [Administered], nil of any other.
	AdminHandler(kind Kind, id ID) http.Handler
}

// Health is the state of the process.
type Health struct {
	Ready bool
	Since time.Time // when it became ready; zero while it is not
}

// Build says which program runs.
type Build struct{ Version, Commit, Date string }

// Observer is an extension that shows the process itself, as admin does. Observers start before everything else, when the process is not
// ready yet, and stop after everything else, with the final counters.
type Observer interface {
	Starter
	ObservesProcess()
}

// Keep says where the spans are after Consume of an exporter returned nil.
type Keep string

// What an acknowledgement means, by exporter.
const (
	KeepNone    Keep = "nowhere"   // nop: taken and forgotten
	KeepMemory  Keep = "in memory" // lost with the process
	KeepStored  Keep = "stored"    // on disk, synced
	KeepWritten Keep = "written"   // on disk, synced later: the process may die, a power cut takes what is recent
	KeepSent    Keep = "sent"      // acknowledged by the next hop
	KeepQueued  Keep = "queued"    // in a queue in memory, to be sent; lost with the process
	KeepOnDisk  Keep = "on disk"   // in a queue on disk, synced, to be sent
)

// Keeper is an exporter that says where it keeps spans. One that does not say is taken as KeepSent.
type Keeper interface {
	Consumer
	Keeps() Keep
}

// Addressed is a component with listeners. Addr returns the address that the named listener got (`grpc`, `http`), or "" where it has no
// such listener or is not started. It is how tests find a port 0.
type Addressed interface {
	Addr(name string) string
}
