// Package delivery moves spans between components. There is an edge around each component. It
// counts the component's spans, makes a span of self-tracing for each call, and recovers from
// panics (a receiver's listener recovers instead of its edge):
//
//	receiver -> ReceiverEdge -> ProcessorEdge -> processor -> ExporterEdge -> exporter
//
// A Gate behind each receiver and processor, and in front of each exporter, can be pointed to
// another component while spans flow. Behind it may be a fan-out to several branches. An
// ExporterEdge may contain a sending queue, in memory or on disk, and a sender with retries.
package delivery

import "github.com/tracing-backend/tracing/pipeline/otlpdata"

// Component identifies the component that an edge belongs to, in the words of metrics and logs.
type Component struct {
	Kind   string // receiver, processor, exporter or extension
	ID     string
	Signal otlpdata.Signal // an edge passes on either spans or log records
}

// Name returns the ID, for log records with a suffix. It is the name of the edge where spans and
// log records are listed together.
func (c Component) Name() string { return NameOf(c.ID, c.Signal) }

// NameOf returns the Name of the edge of a component.
func NameOf(id string, s otlpdata.Signal) string {
	if s == otlpdata.SignalTraces {
		return id
	}
	return id + " (" + s.Items() + ")"
}
