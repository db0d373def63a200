package host

import (
	"net/url"
	"path/filepath"
	"sync/atomic"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config"
	"github.com/tracing-backend/tracing/pipeline/internal/delivery"
)

// node is an instance of a component with everything that the host puts around it. It may be part
// of several graphs, one after the other.
type node struct {
	config     *config.Component // with which the component was built
	pipeline   string            // of a processor, which has one instance per pipeline; "" for other kinds
	component  any
	durability pipeline.Durability // of an exporter
	collectors *collectorSet
	consumer   pipeline.Consumer      // what predecessors call: the component behind its edge
	intake     *delivery.ReceiverEdge // of a receiver
	held       *delivery.HolderEdge   // of a processor that holds spans
	gate       *delivery.Gate         // of a receiver or processor: leads to its successors
	next       []pipeline.Consumer    // the successors that gate leads to
	edge       *delivery.ExporterEdge // of an exporter; may come from the node that it replaced
	writes     []string               // ids of exporters that an extension writes to
	ended      atomic.Bool            // not part of the graph any more; its reports are ignored
}

// place identifies what a node is for. A node can replace another one of the same place.
type place struct {
	key      config.Key
	pipeline string
}

func (n *node) place() place { return place{n.config.Key, n.pipeline} }

// String returns kind, id and, for a processor, pipeline.
func (n *node) String() string {
	if n.pipeline != "" {
		return n.config.Key.String() + " in " + n.pipeline
	}
	return n.config.Key.String()
}

// dir returns the private folder of the component below service.data_dir. The folder is called type
// or type-name. Names are escaped and types contain no `-`, so folders are unique. Folders of
// exporters are directly in data_dir; those of other kinds are in a subfolder per kind.
func (n *node) dir() string {
	key, name := n.config.Key, n.config.DirName()
	if key.Kind == pipeline.KindExporter {
		return name
	}
	return filepath.Join(key.Kind.Section(), name, url.PathEscape(n.pipeline))
}

// deliveryName identifies the component in metrics of its edge.
func (n *node) deliveryName() delivery.Component {
	return delivery.Component{Kind: n.config.Key.Kind.String(), ID: n.config.Key.ID.String()}
}

// lead connects the edge of an exporter to the exporter.
func (n *node) lead() {
	d := n.durability
	isStore := d == pipeline.DurabilityMemory || d == pipeline.DurabilityStored || d == pipeline.DurabilityWritten
	n.edge.Lead(n.component.(pipeline.Consumer), delivery.ConfigOf(n.config.Value), isStore)
}

// forwardsOnly reports whether an exporter sends spans to a next hop and does not keep or discard
// them.
func (n *node) forwardsOnly() bool {
	d := n.durability
	return d == pipeline.DurabilitySent || d == pipeline.DurabilityQueued || d == pipeline.DurabilityQueueOnDisk
}
