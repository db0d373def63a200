package delivery

import (
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/queueopt"
)

// ConfigOf returns the Delivery that the configuration of an exporter embeds, or nil.
func ConfigOf(exporterConfig any) *pipeline.Delivery {
	if d, ok := exporterConfig.(interface{ DeliveryConfig() *pipeline.Delivery }); ok {
		return d.DeliveryConfig()
	}
	return nil
}

// QueueOf returns the configuration of an exporter's sending queue with all defaults, and whether
// the queue is enabled. d may be nil.
func QueueOf(d *pipeline.Delivery) (pipeline.QueueConfig, bool) {
	if d == nil {
		return pipeline.QueueConfig{}, false
	}
	if q, on := d.Queue.Get(); on && q.Enabled {
		return withDefaults(q), true
	}
	return pipeline.QueueConfig{}, false
}

func withDefaults(c pipeline.QueueConfig) pipeline.QueueConfig {
	c.MaxBytes = c.MaxSize()
	switch {
	case c.BlockOnOverflow:
		c.Overflow = queueopt.OverflowBlock
	case c.Overflow == "":
		c.Overflow = queueopt.OverflowRefuse
	}
	if b, on := c.Batch.Get(); on && b.Sizer == "" {
		b.Sizer = queueopt.SizerItems
		if c.Sizer == queueopt.SizerBytes {
			b.Sizer = queueopt.SizerBytes
		}
		c.Batch = pipeline.Present(b)
	}
	return c
}

// QueueDurability returns the durability of spans in a queue.
func QueueDurability(c pipeline.QueueConfig) pipeline.Durability {
	if c.Storage == queueopt.StorageDisk {
		return pipeline.DurabilityQueueOnDisk
	}
	return pipeline.DurabilityQueued
}
