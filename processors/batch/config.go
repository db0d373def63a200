package batch

import (
	"errors"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
)

// Config configures the processor. Sizes are in spans.
type Config struct {
	Timeout           pipeline.Duration `yaml:"timeout" doc:"Maximum time, at most 1s, that a request waits, so that more are joined, while earlier requests of its tenant are being sent. With 0, it waits only while the maximum number of batches (concurrency) is being sent."`
	MinInterval       pipeline.Duration `yaml:"min_interval" doc:"Minimum time, at most 1s, between two batches of a tenant, unless send_batch_size is reached. Clients wait for it. Use it if a queue on disk follows and the destination needs few, large requests."`
	SendBatchSize     int               `yaml:"send_batch_size" doc:"Number of spans at which waiting requests are sent before timeout and min_interval."`
	SendBatchMaxSize  int               `yaml:"send_batch_max_size" doc:"Maximum number of spans in a batch. A larger request is passed on unsplit."`
	SendBatchMaxBytes pipeline.ByteSize `yaml:"send_batch_max_bytes" doc:"Maximum size of a batch. A larger request is passed on unsplit."`
	Concurrency       int               `yaml:"concurrency" doc:"Maximum number of batches sent concurrently. 0 uses the number of CPUs."`
	MetadataKeys      []string          `yaml:"metadata_keys" doc:"Names of request headers, in any case. Only requests with equal headers are joined; a missing header differs from an empty one. Receivers pass headers on with include_metadata: true."`
	MetadataLimit     int               `yaml:"metadata_cardinality_limit" doc:"Maximum number of combinations of values of metadata_keys. Requests with further combinations are refused. 0 disables the limit."`
}

// maxDelay is the maximum time that a client waits for its spans to be joined with others although
// a send could begin.
const maxDelay = time.Second

func defaults() Config {
	// The default gRPC message limit of a next hop is 4 MiB.
	return Config{SendBatchSize: 8192, SendBatchMaxSize: 16384, SendBatchMaxBytes: 3 << 20, MetadataLimit: 1000}
}

// JoinsHeaders implements [pipeline.HeaderJoiner].
func (c *Config) JoinsHeaders() (key string, kept []string) { return "metadata_keys", c.MetadataKeys }

// Warnings says that a long timeout does not collect spans.
func (c *Config) Warnings(time.Duration) error {
	if c.Timeout.Std() <= maxDelay {
		return nil
	}
	return pipeline.BadKey("timeout", "is limited to %s, because clients wait until their spans are sent; a request waits only while others "+
		"are being sent, not for spans that may come; to collect spans for some time, use sending_queue.batch of the exporter",
		pipeline.Duration(maxDelay))
}

// Validate reports invalid sizes.
func (c *Config) Validate() error {
	var errs []error
	if c.MinInterval.Std() > maxDelay {
		errs = append(errs, pipeline.BadKey("min_interval", "must be at most %s, not %s; clients wait for it", maxDelay,
			c.MinInterval))
	}
	if c.SendBatchSize < 1 {
		errs = append(errs, pipeline.BadKey("send_batch_size", "must be above 0, not %d", c.SendBatchSize))
	}
	if c.SendBatchMaxSize < c.SendBatchSize {
		errs = append(errs, pipeline.BadKey("send_batch_max_size", "must be at least send_batch_size (%d), not %d",
			c.SendBatchSize, c.SendBatchMaxSize))
	}
	if c.SendBatchMaxBytes < 1 {
		errs = append(errs, pipeline.BadKey("send_batch_max_bytes", "must be above 0"))
	}
	if c.Concurrency < 0 {
		errs = append(errs, pipeline.BadKey("concurrency", "must not be below 0"))
	}
	if c.MetadataLimit < 0 {
		errs = append(errs, pipeline.BadKey("metadata_cardinality_limit", "must not be below 0"))
	}
	names := map[string]bool{}
	for _, name := range c.MetadataKeys {
		if lower := strings.ToLower(name); names[lower] {
			errs = append(errs, pipeline.BadKey("metadata_keys", "%q is listed twice; headers are the same in any case", name))
		} else {
			names[lower] = true
		}
	}
	return errors.Join(errs...)
}
