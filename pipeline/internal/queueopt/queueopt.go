// Package queueopt holds the values of the keys below sending_queue: package pipeline validates
// them, package delivery acts on them.
package queueopt

// Values of sizer: what queue_size counts.
const (
	SizerBytes    = "bytes"
	SizerItems    = "items" // spans
	SizerRequests = "requests"
)

// Values of overflow: what to do with a batch if the queue is full.
const (
	OverflowRefuse     = "refuse"
	OverflowBlock      = "block"
	OverflowDropOldest = "drop_oldest"
)

// StorageDisk is the value of storage for a queue on disk. An empty value is a queue in memory.
const StorageDisk = "disk"
