package pipeline

import (
	"errors"
	"time"

	"github.com/tracing-backend/tracing/pipeline/internal/queueopt"
)

// Delivery holds the configuration keys for delivery to an exporter that sends over a network:
// timeout, retries and sending queue. The configuration of the exporter embeds it; the framework
// then retries and queues, and the exporter's Consume makes a single attempt. Keys that also exist
// in the OpenTelemetry Collector have the same names.
type Delivery struct {
	Timeout Duration              `yaml:"timeout" doc:"Maximum duration of one attempt to send a batch."`
	Retry   RetryConfig           `yaml:"retry_on_failure" doc:"Retries after temporary errors."`
	Queue   Optional[QueueConfig] `yaml:"sending_queue" doc:"Queue of batches that are acknowledged immediately and sent later. Without it, clients wait for the response of the next hop."`
}

// RetryConfig holds the keys below retry_on_failure.
type RetryConfig struct {
	Enabled             bool     `yaml:"enabled" doc:"Whether to retry after temporary errors."`
	InitialInterval     Duration `yaml:"initial_interval" doc:"Delay before the first retry."`
	RandomizationFactor float64  `yaml:"randomization_factor" doc:"Fraction by which each delay is randomly increased or decreased, from 0 to 1."`
	Multiplier          float64  `yaml:"multiplier" doc:"Factor by which the delay grows after each retry."`
	MaxInterval         Duration `yaml:"max_interval" doc:"Maximum delay between attempts, unless the next hop asks for a longer one."`
	MaxElapsedTime      Duration `yaml:"max_elapsed_time" doc:"Maximum time spent on one batch, including retries. 0 disables the limit."`
}

// DefaultDelivery returns the default configuration: attempts of 5 s, retries for 5 minutes, and no
// queue, so that acknowledged spans have been accepted by the next hop.
func DefaultDelivery() Delivery {
	return Delivery{
		Timeout: Duration(5 * time.Second),
		Retry: RetryConfig{Enabled: true, InitialInterval: Duration(5 * time.Second), RandomizationFactor: 0.5, Multiplier: 1.5,
			MaxInterval: Duration(30 * time.Second), MaxElapsedTime: Duration(5 * time.Minute)},
		Queue: Absent(DefaultQueue()),
	}
}

// DeliveryConfig returns d. The framework recognizes configurations that embed Delivery by this
// method.
func (d *Delivery) DeliveryConfig() *Delivery { return d }

// KeepsOnDisk reports whether there is a queue on disk.
func (d *Delivery) KeepsOnDisk() bool {
	q, on := d.Queue.Get()
	return on && q.Enabled && q.Storage == queueopt.StorageDisk
}

// Validate checks the timeout.
func (d *Delivery) Validate() error {
	if d.Timeout <= 0 {
		return BadKey("timeout", "must be above 0; an attempt without a timeout could block forever")
	}
	return nil
}

// Validate checks the delays.
func (c *RetryConfig) Validate() error {
	var errs []error
	if c.InitialInterval <= 0 {
		errs = append(errs, BadKey("initial_interval", "must be above 0"))
	}
	if c.MaxInterval < c.InitialInterval {
		errs = append(errs, BadKey("max_interval", "must be at least initial_interval (%s), not %s", c.InitialInterval, c.MaxInterval))
	}
	if !(c.RandomizationFactor >= 0 && c.RandomizationFactor <= 1) {
		errs = append(errs, BadKey("randomization_factor", "must be from 0 to 1"))
	}
	if !(c.Multiplier >= 1) {
		errs = append(errs, BadKey("multiplier", "must be at least 1"))
	}
	return errors.Join(errs...)
}
