package pipeline

import (
	"errors"
	"time"

	"github.com/tracing-backend/tracing/pipeline/internal/queueopt"
)

// QueueBatchConfig holds the keys below sending_queue.batch.
type QueueBatchConfig struct {
	FlushTimeout Duration `yaml:"flush_timeout" doc:"Maximum time that batches wait, after they were taken from the queue, until min_size is reached."`
	Sizer        string   `yaml:"sizer" doc:"Unit of min_size and max_size: items (spans) or bytes. Empty means the unit of the queue, or items for requests."`
	MinSize      int64    `yaml:"min_size" doc:"Size at which joined batches are sent before flush_timeout. 0 sends each batch immediately."`
	MaxSize      int64    `yaml:"max_size" doc:"Maximum size of a request. Larger batches are split, down to single spans. 0 disables the limit."`
}

func defaultQueueBatch() QueueBatchConfig {
	return QueueBatchConfig{FlushTimeout: Duration(200 * time.Millisecond), MinSize: 8192}
}

// Validate checks the numbers and the unit.
func (c *QueueBatchConfig) Validate() error {
	var errs []error
	if c.FlushTimeout <= 0 {
		errs = append(errs, BadKey("flush_timeout", "must be above 0"))
	}
	if c.Sizer != "" && c.Sizer != queueopt.SizerItems && c.Sizer != queueopt.SizerBytes {
		errs = append(errs, BadKey("sizer", "%q is unknown; write one of: %s, %s", c.Sizer, queueopt.SizerItems, queueopt.SizerBytes))
	}
	if c.MinSize < 0 {
		errs = append(errs, BadKey("min_size", "must not be below 0, not %d", c.MinSize))
	}
	if c.MaxSize < 0 || c.MaxSize > 0 && c.MaxSize < c.MinSize {
		errs = append(errs, BadKey("max_size", "must be at least min_size (%d), or 0 for no limit, not %d", c.MinSize, c.MaxSize))
	}
	return errors.Join(errs...)
}
