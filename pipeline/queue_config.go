package pipeline

import (
	"errors"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/internal/queueopt"
)

// QueueConfig holds the keys below sending_queue.
type QueueConfig struct {
	Enabled         bool     `yaml:"enabled" doc:"Whether to use a queue. The block also enables it if the key is missing."`
	Storage         string   `yaml:"storage" doc:"Storage of the queue: disk (files in service.data_dir, synced before spans are acknowledged, and sent after a restart) or empty (memory)."`
	NumConsumers    int      `yaml:"num_consumers" doc:"Number of batches sent concurrently."`
	QueueSize       int64    `yaml:"queue_size" doc:"Maximum size of the queue, in the unit of sizer. 0 disables this limit; max_bytes still applies."`
	Sizer           string   `yaml:"sizer" doc:"Unit of queue_size: bytes, items (spans) or requests."`
	MaxBytes        ByteSize `yaml:"max_bytes" doc:"Maximum size of the queue in bytes, regardless of sizer. 0 means 1GiB on disk, and an eighth of the available memory, at most 64MiB, in memory."`
	Overflow        string   `yaml:"overflow" doc:"What happens when the queue is full: refuse (refuse the batch as overloaded), block (wait) or drop_oldest (discard the oldest batches). Empty means refuse."`
	BlockOnOverflow bool     `yaml:"block_on_overflow" doc:"Whether to wait when the queue is full, as with overflow: block."`

	Batch Optional[QueueBatchConfig] `yaml:"batch" doc:"Joins batches of one tenant before they are sent."`
}

// The maximum size of a queue whose max_bytes is 0. A queue in memory gets 1/memoryQueuePart of the
// available memory, at most maxMemoryQueue.
const (
	defaultDiskQueue ByteSize = 1 << 30
	memoryQueuePart           = 8
	maxMemoryQueue   ByteSize = 64 << 20
)

// MaxSize returns max_bytes, or its default if it is 0.
func (c *QueueConfig) MaxSize() ByteSize {
	switch {
	case c.MaxBytes != 0:
		return c.MaxBytes
	case c.Storage == queueopt.StorageDisk:
		return defaultDiskQueue
	}
	return MemoryShare(memoryQueuePart, maxMemoryQueue)
}

// DefaultQueue returns the default configuration of a queue that is enabled.
func DefaultQueue() QueueConfig {
	return QueueConfig{Enabled: true, NumConsumers: 10, QueueSize: 1000, Sizer: queueopt.SizerRequests, Batch: Absent(defaultQueueBatch())}
}

// maxConsumers is the maximum of num_consumers.
const maxConsumers = 10_000

// Validate checks the numbers and the words.
func (c *QueueConfig) Validate() error {
	var errs []error
	if c.NumConsumers < 1 || c.NumConsumers > maxConsumers {
		errs = append(errs, BadKey("num_consumers", "must be from 1 to %d, not %d", maxConsumers, c.NumConsumers))
	}
	if c.QueueSize < 0 {
		errs = append(errs, BadKey("queue_size", "must be above 0, or 0 for no limit but max_bytes, not %d", c.QueueSize))
	}
	if c.MaxBytes < 0 {
		errs = append(errs, BadKey("max_bytes", "must be above 0, or 0 for the default"))
	}
	if c.Storage != "" && c.Storage != queueopt.StorageDisk {
		errs = append(errs, BadKey("storage", "unknown storage %q; write disk, or leave the key out for a queue in memory", c.Storage))
	}
	oneOf := func(key, value string, known ...string) {
		if !slices.Contains(known, value) {
			errs = append(errs, BadKey(key, "%q is unknown; write one of: %s", value, strings.Join(known, ", ")))
		}
	}
	oneOf("sizer", c.Sizer, queueopt.SizerBytes, queueopt.SizerItems, queueopt.SizerRequests)
	if c.Overflow != "" {
		oneOf("overflow", c.Overflow, queueopt.OverflowRefuse, queueopt.OverflowBlock, queueopt.OverflowDropOldest)
	}
	if c.BlockOnOverflow && c.Overflow != "" && c.Overflow != queueopt.OverflowBlock {
		errs = append(errs, BadKey("block_on_overflow", "contradicts overflow: %s", c.Overflow))
	}
	if b, on := c.Batch.Get(); on && b.Sizer == c.Sizer && c.QueueSize > 0 && b.MinSize > c.QueueSize {
		errs = append(errs, BadKey("batch::min_size", "must be at most queue_size (%d), not %d; the queue could never hold that much",
			c.QueueSize, b.MinSize))
	}
	return errors.Join(errs...)
}
