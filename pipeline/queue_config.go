package pipeline

import (
	"errors"
	"slices"
	"strings"
)

// QueueConfig are the keys below sending_queue.
type QueueConfig struct {
	Enabled         bool     `yaml:"enabled" doc:"Whether there is a queue; false is as if the block were not there."`
	Storage         string   `yaml:"storage" doc:"disk: spans are synced to files below service.data_dir before they are acknowledged, and are sent after a restart, too. Empty: they are kept in memory."`
	NumConsumers    int      `yaml:"num_consumers" doc:"How many batches are sent at once."`
	QueueSize       int64    `yaml:"queue_size" doc:"How much the queue holds, in units of sizer. 0: nothing but max_bytes limits it."`
	Sizer           string   `yaml:"sizer" doc:"What queue_size counts: bytes, items (spans) or requests."`
	MaxBytes        ByteSize `yaml:"max_bytes" doc:"Greatest size of the queue, whatever the sizer counts. 0: 64MiB in memory, 1GiB on disk."`
	Overflow        string   `yaml:"overflow" doc:"What becomes of a batch when the queue is full: refuse it as overloaded, block until there is room, or drop_oldest to make room. Empty is refuse."`
	BlockOnOverflow bool     `yaml:"block_on_overflow" doc:"The same as overflow: block."`
}

// DefaultQueue returns the defaults of a queue that a file asks for.
func DefaultQueue() QueueConfig {
	return QueueConfig{Enabled: true, NumConsumers: 10, QueueSize: 1000, Sizer: sizerRequests}
}

// What queue_size may count.
const (
	sizerBytes    = "bytes"
	sizerItems    = "items"
	sizerRequests = "requests"
)

// What may happen when the queue is full.
const (
	overflowRefuse = "refuse"
	overflowBlock  = "block"
	overflowDrop   = "drop_oldest"
)

// storageDisk is the only storage beside memory.
const storageDisk = "disk"

// Sizes of a queue that max_bytes says nothing about.
const (
	defaultMemoryQueue ByteSize = 64 << 20
	defaultDiskQueue   ByteSize = 1 << 30
)

// Validate checks the sizes and the words.
func (c *QueueConfig) Validate() error {
	var errs []error
	if c.NumConsumers < 1 || c.NumConsumers > 10_000 {
		errs = append(errs, BadKey("num_consumers", "must be from 1 to 10000, not %d", c.NumConsumers))
	}
	if c.QueueSize < 0 {
		errs = append(errs, BadKey("queue_size", "must be above 0, or 0 for no limit but max_bytes, not %d", c.QueueSize))
	}
	if c.MaxBytes < 0 {
		errs = append(errs, BadKey("max_bytes", "must be above 0, or 0 for the default"))
	}
	if c.Storage != "" && c.Storage != storageDisk {
		errs = append(errs, BadKey("storage", "%q is no storage; write disk, or leave the key out for a queue in memory", c.Storage))
	}
	words := func(key, value string, known ...string) {
		if !slices.Contains(known, value) {
			errs = append(errs, BadKey(key, "%q is unknown; write one of: %s", value, strings.Join(known, ", ")))
		}
	}
	words("sizer", c.Sizer, sizerBytes, sizerItems, sizerRequests)
	if c.Overflow != "" {
		words("overflow", c.Overflow, overflowRefuse, overflowBlock, overflowDrop)
	}
	if c.BlockOnOverflow && c.Overflow != "" && c.Overflow != overflowBlock {
		errs = append(errs, BadKey("block_on_overflow", "contradicts overflow: %s", c.Overflow))
	}
	return errors.Join(errs...)
}

// whole returns the configuration with what is left out filled in.
func (c QueueConfig) whole() QueueConfig {
	if c.MaxBytes == 0 {
		c.MaxBytes = defaultMemoryQueue
		if c.Storage == storageDisk {
			c.MaxBytes = defaultDiskQueue
		}
	}
	switch {
	case c.BlockOnOverflow:
		c.Overflow = overflowBlock
	case c.Overflow == "":
		c.Overflow = overflowRefuse
	}
	return c
}

// keep says where the spans are that the queue has taken.
func (c *QueueConfig) keep() Keep {
	if c.Storage == storageDisk {
		return KeepOnDisk
	}
	return KeepQueued
}
