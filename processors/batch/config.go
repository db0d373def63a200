package batch

import (
	"errors"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

// Config configures the processor. Sizes are in spans.
type Config struct {
	Timeout           pipeline.Duration `yaml:"timeout" doc:"Maximum time that a request waits until send_batch_size spans have arrived. 0 sends requests as soon as possible."`
	SendBatchSize     int               `yaml:"send_batch_size" doc:"Number of spans at which a batch is sent before the timeout. Not used if timeout is 0."`
	SendBatchMaxSize  int               `yaml:"send_batch_max_size" doc:"Maximum number of spans in a batch. A single request that is already larger is passed on unsplit."`
	SendBatchMaxBytes pipeline.ByteSize `yaml:"send_batch_max_bytes" doc:"Maximum size of a batch. A single request that is already larger is passed on unsplit."`
	Concurrency       int               `yaml:"concurrency" doc:"Maximum number of batches sent concurrently. 0 uses the number of CPUs."`
	MetadataKeys      []string          `yaml:"metadata_keys" doc:"Names of request headers, in any case. Requests are joined only if these headers are equal; a missing header differs from an empty one. Receivers pass headers on with include_metadata: true."`
	MetadataLimit     int               `yaml:"metadata_cardinality_limit" doc:"Maximum number of combinations of values of metadata_keys. Requests with further combinations are refused. 0 disables the limit."`
}

func defaults() Config {
	// The default gRPC message limit of a next hop is 4 MiB.
	return Config{SendBatchSize: 8192, SendBatchMaxSize: 16384, SendBatchMaxBytes: 3 << 20, MetadataLimit: 1000}
}

// Validate reports invalid sizes.
func (c *Config) Validate() error {
	var errs []error
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
