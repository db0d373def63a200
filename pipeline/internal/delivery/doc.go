// Package delivery moves spans between components: it counts them at the edges of receivers and
// exporters, distributes them to several branches, retries, and queues.
//
//	receiver -> ReceiverEdge -> Gate -> processor -> Gate -> FanOut -> ExporterEdge -> exporter
//
// An ExporterEdge may contain a sending queue, in memory or on disk, and a sender with retries.
package delivery

// Component identifies the component that an edge belongs to, in the words of metrics and logs.
type Component struct {
	Kind string // receiver, processor, exporter or extension
	ID   string
}
