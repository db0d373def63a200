package host

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config"
	"github.com/tracing-backend/tracing/pipeline/internal/delivery"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// node is an instance of a component with everything that the host puts around it. It may be part
// of several graphs, one after the other.
type node struct {
	config     *config.Component // configuration with which the component was built
	pipeline   string            // of a processor, which has one instance per pipeline; "" for other kinds
	signal     otlpdata.Signal   // of a processor or exporter; an exporter has an instance for each signal
	component  any
	log        *zap.Logger         // of the component
	durability pipeline.Durability // of an exporter
	collectors *collectorSet
	consumer   pipeline.Consumer      // what predecessors call: the component behind its edge
	intake     *delivery.ReceiverEdge // of a receiver
	held       *delivery.HolderEdge   // of a processor that holds spans
	gate       *delivery.Gate         // of a receiver, processor or connector: leads to its successors
	next       []delivery.Way         // the successors that gate leads to
	refs       []*node                // nodes that the component refers to
	edge       *delivery.ExporterEdge // of an exporter; may come from the node that it replaced
	writes     []string               // ids of exporters that an extension writes to
	ended      atomic.Bool            // can no longer be part of a graph; its reports are ignored
	stopped    chan struct{}          // closed when it has stopped in the background; nil before
}

// signalOf returns what a pipeline passes on.
func signalOf(p config.Pipeline) otlpdata.Signal {
	if p.Logs() {
		return otlpdata.SignalLogs
	}
	return otlpdata.SignalTraces
}

// place identifies the role of a node. A node can replace another node with the same place.
type place struct {
	key      config.Key
	pipeline string
	signal   otlpdata.Signal
}

func (n *node) place() place { return place{n.config.Key, n.pipeline, n.signal} }

// String returns kind, id and, for a processor, pipeline. The name of an exporter of log records
// says so.
func (n *node) String() string {
	if n.pipeline != "" {
		return n.config.Key.String() + " in " + n.pipeline
	}
	return delivery.NameOf(n.config.Key.String(), n.signal)
}

// dir returns the private folder of the component below service.data_dir. The folder is called type
// or type-name. Names are escaped and types contain no `-`, so folders are unique. Folders of
// exporters are directly in data_dir, or in its subfolder logs if they get log records; folders of
// other kinds are in a subfolder per kind.
func (n *node) dir() string {
	key, name := n.config.Key, n.config.DirName()
	if key.Kind == pipeline.KindExporter {
		if n.signal == otlpdata.SignalLogs {
			return filepath.Join(n.signal.String(), name)
		}
		return name
	}
	return filepath.Join(key.Kind.Section(), name, url.PathEscape(n.pipeline))
}

// calls reports whether the gate of n leads to m.
func (n *node) calls(m *node) bool {
	return m.consumer != nil && slices.ContainsFunc(n.next, func(w delivery.Way) bool { return w.To == m.consumer })
}

// handOver calls HandOver of the component if it has this method.
func (n *node) handOver(ctx context.Context, limit time.Duration) (err error) {
	defer n.recoverCall("HandOver", &err)
	if h, ok := n.component.(pipeline.Replaceable); ok {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		h.HandOver(ctx)
	}
	return nil
}

// recoverCall is deferred around a call of a method of the component: it logs a panic and turns it
// into an error.
func (n *node) recoverCall(method string, err *error) {
	if p := recover(); p != nil {
		n.log.Error("BUG: component panicked", zap.String("method", method), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
		*err = fmt.Errorf("BUG: %s panicked: %v", method, p)
	}
}

// hasClients reports whether n is a receiver or an extension.
func (n *node) hasClients() bool {
	return n.config.Key.Kind == pipeline.KindReceiver || n.config.Key.Kind == pipeline.KindExtension
}

// deliveryName identifies the component in metrics of its edge.
func (n *node) deliveryName() delivery.Component {
	return delivery.Component{Kind: n.config.Key.Kind.String(), ID: n.config.Key.ID.String(), Signal: n.signal}
}

// lead connects the edge of an exporter to the exporter.
func (n *node) lead() {
	d := n.durability
	isStore := d == pipeline.DurabilityMemory || d == pipeline.DurabilityStored || d == pipeline.DurabilityWritten
	n.edge.Lead(n.component.(pipeline.Consumer), delivery.ConfigOf(n.config.Value), isStore)
}

// leadTo connects a receiver, processor or connector to its successors and opens its gate. left is
// closed when no call uses the previous successors.
func (n *node) leadTo(next []delivery.Way, m *delivery.Metrics) (left <-chan struct{}) {
	n.next = next
	switch n.config.Key.Kind {
	case pipeline.KindConnector:
		return n.gate.Open(delivery.NewBranches(next, m, n.deliveryName().ID))
	case pipeline.KindReceiver:
		left = n.gate.Open(delivery.NewSignals(next))
		n.intake.SetWays(next)
		return left
	}
	return n.gate.Open(delivery.NewSuccessor(next))
}

// forwardsOnly reports whether an exporter sends spans to a next hop and does not keep or discard
// them.
func (n *node) forwardsOnly() bool {
	d := n.durability
	return d == pipeline.DurabilitySent || d == pipeline.DurabilityQueued || d == pipeline.DurabilityQueueOnDisk
}
