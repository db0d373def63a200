package pipeline

// Durability says where spans are once Consume of an exporter has returned nil.
type Durability string

// Durabilities of exporters. The values are shown to users.
const (
	DurabilityNone        Durability = "nowhere"   // discarded
	DurabilityMemory      Durability = "in memory" // lost if the process ends
	DurabilityStored      Durability = "stored"    // on disk, synced
	DurabilityWritten     Durability = "written"   // on disk, synced later: a power failure loses recent spans
	DurabilitySent        Durability = "sent"      // accepted by the next hop
	DurabilityQueued      Durability = "queued"    // in a sending queue in memory; lost if the process ends
	DurabilityQueueOnDisk Durability = "on disk"   // in a sending queue on disk, synced
)

// DurabilityReporter is implemented by exporters that report where they keep acknowledged spans.
// The durability of an exporter that does not report it is [DurabilitySent].
type DurabilityReporter interface {
	Consumer
	Durability() Durability
}

// DurableConfig is implemented by pointers to configurations of exporters that may keep
// acknowledged spans on disk: stores, and exporters that embed [Delivery].
type DurableConfig interface {
	// KeepsOnDisk reports whether the store or the queue of the exporter is on disk.
	KeepsOnDisk() bool
}
