package kafka

import (
	"errors"
	"math"
	"time"

	"github.com/tracing-backend/tracing/internal/kafka"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// Config is the configuration of the receiver, for commands that need its brokers, topic and group.
type Config = config

type config struct {
	kafka.ClientConfig
	Topic           string `yaml:"topic" doc:"Topic to consume."`
	Encoding        string `yaml:"encoding" doc:"Encoding of the records: otlp_proto, otlp_json, jaeger_proto, jaeger_json, zipkin_proto, zipkin_json or zipkin_thrift."`
	GroupID         string `yaml:"group_id" doc:"Consumer group. Its members share the partitions of the topic."`
	GroupInstanceID string `yaml:"group_instance_id" doc:"Identity of a static member, unique in the group, which keeps its partitions when it restarts within session_timeout. If empty, the member is dynamic."`
	RackID          string `yaml:"rack_id" doc:"Location of this process, as in the brokers' broker.rack, so that it can read from the nearest replica."`
	InitialOffset   string `yaml:"initial_offset" doc:"First position in a partition without a committed offset: earliest or latest."`

	SessionTimeout    pipeline.Duration `yaml:"session_timeout" doc:"Time without heartbeats after which a member loses its partitions."`
	HeartbeatInterval pipeline.Duration `yaml:"heartbeat_interval" doc:"Interval of heartbeats to the group."`
	RebalanceTimeout  pipeline.Duration `yaml:"rebalance_timeout" doc:"Maximum time for members to give up partitions in a rebalance."`
	RevokeTimeout     pipeline.Duration `yaml:"revoke_timeout" doc:"Maximum time of one attempt to process a batch, instead of service.limits.max_wait. Also the maximum time to wait for the batch of a revoked partition; then it is canceled, and the next member consumes its records."`

	MinFetchSize             pipeline.ByteSize `yaml:"min_fetch_size" doc:"Minimum size of a response to a fetch. Brokers wait for more records for at most max_fetch_wait."`
	MaxFetchSize             pipeline.ByteSize `yaml:"max_fetch_size" doc:"Maximum size of a response to a fetch, compressed. A larger batch of records is fetched nevertheless."`
	MaxFetchWait             pipeline.Duration `yaml:"max_fetch_wait" doc:"Maximum time for which brokers wait until min_fetch_size is reached."`
	MaxPartitionFetchSize    pipeline.ByteSize `yaml:"max_partition_fetch_size" doc:"Maximum size of the records of one partition in a response to a fetch, compressed."`
	MaxConcurrentFetches     int               `yaml:"max_concurrent_fetches" doc:"Maximum number of running fetches, and of fetches whose records wait in the client library. Limits its memory together with max_fetch_size."`
	MaxDecompressedBatchSize pipeline.ByteSize `yaml:"max_decompressed_batch_size" doc:"Maximum size of a decompressed batch of records. Larger ones are skipped and counted as one dead letter."`
	MaxQueuedSize            pipeline.ByteSize `yaml:"max_queued_size" doc:"Maximum size of records that wait or are being processed, except in paused partitions. Above it, polling stops. All records count toward service.limits.inflight."`

	Batch         batchConfig      `yaml:"batch" doc:"Joining of consecutive records of one partition and tenant."`
	MaxConcurrent int              `yaml:"max_concurrent" doc:"Maximum number of batches in the pipeline, at most one for each partition."`
	Autocommit    commitConfig     `yaml:"autocommit" doc:"Commits of the offsets of accepted records."`
	ErrorBackoff  backoffConfig    `yaml:"error_backoff" doc:"Delays between attempts after temporary errors of the pipeline or when writing dead letters. The number of attempts is unlimited."`
	DeadLetter    deadLetterConfig `yaml:"dead_letter" doc:"Where to write records that cannot be decoded, have no valid tenant or are refused permanently."`

	Tenancy         pipeline.Optional[server.TenancyConfig] `yaml:"tenancy" doc:"Separation of tenants: every record must have a header that names its tenant."`
	IncludeMetadata bool                                    `yaml:"include_metadata" doc:"Whether the headers of records stay available to components such as batch (metadata_keys) and routing (request). Only records with the same headers are joined then."`
	server.RequestLimits
}

type batchConfig struct {
	MaxSize  pipeline.ByteSize `yaml:"max_size" doc:"Maximum size of joined records in bytes. A larger record is its own batch."`
	MaxSpans int               `yaml:"max_spans" doc:"Maximum number of spans of joined records. A larger record is its own batch."`
}

type commitConfig struct {
	Interval pipeline.Duration `yaml:"interval" doc:"Interval between commits. Offsets are also committed when a partition is revoked and at shutdown."`
	Timeout  pipeline.Duration `yaml:"timeout" doc:"Maximum duration of one commit. A failed commit is retried after the interval."`
}

type backoffConfig struct {
	InitialInterval pipeline.Duration `yaml:"initial_interval" doc:"Delay before the second attempt. It doubles with each further attempt."`
	MaxInterval     pipeline.Duration `yaml:"max_interval" doc:"Maximum delay between attempts, unless the error asks for a longer one."`
}

type deadLetterConfig struct {
	Topic   string            `yaml:"topic" doc:"Topic of dead letters, which must exist. Empty writes files to service.data_dir/receivers/NAME/dead_letters instead."`
	MaxSize pipeline.ByteSize `yaml:"max_size" doc:"Maximum size of all dead-letter files. At this size, partitions with dead letters wait until files are removed."`
	Timeout pipeline.Duration `yaml:"timeout" doc:"Maximum duration of one attempt to write a dead letter to the topic."`
}

const (
	earliest = "earliest"
	latest   = "latest"
)

// Bounds of the client library and of Kafka's protocol, which stores milliseconds in 32 bits.
const (
	maxFetchSize    = 1<<30 - responseOverhead
	minFetchWait    = 10 * time.Millisecond
	minGroupTimeout = 100 * time.Millisecond
	maxWireTime     = math.MaxInt32 * time.Millisecond
)

// responseOverhead is the maximum size of a response to a fetch without the records, in bytes.
const responseOverhead = 1 << 20

func defaults() config {
	const second = pipeline.Duration(time.Second)
	return config{
		ClientConfig: kafka.DefaultClientConfig(),
		Topic:        kafka.DefaultTopic, Encoding: kafka.OTLPProto, GroupID: "tracing", InitialOffset: earliest,
		SessionTimeout: 45 * second, HeartbeatInterval: 3 * second, RebalanceTimeout: 60 * second, RevokeTimeout: 30 * second,
		MinFetchSize: 1, MaxFetchSize: 1 << 20, MaxFetchWait: second / 4, MaxPartitionFetchSize: 1 << 20, MaxConcurrentFetches: 4,
		MaxDecompressedBatchSize: 64 << 20, MaxQueuedSize: 32 << 20,
		Batch: batchConfig{MaxSize: 2 << 20, MaxSpans: 20_000}, MaxConcurrent: 8,
		Autocommit:    commitConfig{Interval: second, Timeout: 10 * second},
		ErrorBackoff:  backoffConfig{InitialInterval: second / 2, MaxInterval: 30 * second},
		DeadLetter:    deadLetterConfig{MaxSize: 1 << 30, Timeout: 30 * second},
		Tenancy:       pipeline.Absent(server.TenancyConfig{Enabled: true, Header: kafka.DefaultTenantHeader}),
		RequestLimits: server.DefaultRequestLimits(),
	}
}

// SeparatesTenants implements [pipeline.TenantSeparator].
func (c *config) SeparatesTenants() bool {
	t, on := c.Tenancy.Get()
	return on && t.Enabled
}

// KeepsHeaders implements [pipeline.HeaderKeeper].
func (c *config) KeepsHeaders() bool { return c.IncludeMetadata }

// Validate checks the keys outside of blocks.
func (c *config) Validate() error {
	errs := []error{kafka.ValidateTopic("topic", c.Topic)}
	bad := func(key, format string, args ...any) { errs = append(errs, pipeline.BadKey(key, format, args...)) }
	if _, err := kafka.NewDecoder(c.Encoding, c.Limits()); err != nil {
		bad("encoding", "%v", err)
	}
	if c.DeadLetter.Topic == c.Topic {
		bad("dead_letter::topic", "must not be the topic that is consumed; its dead letters would be consumed again and again")
	}
	if c.GroupID == "" {
		bad("group_id", "must be set; members with the same group share the partitions")
	}
	if c.InitialOffset != earliest && c.InitialOffset != latest {
		bad("initial_offset", "must be %s or %s, not %q", earliest, latest, c.InitialOffset)
	}
	if c.HeartbeatInterval <= 0 || c.SessionTimeout < 2*c.HeartbeatInterval {
		bad("session_timeout", "must be at least twice heartbeat_interval, which must be above 0")
	}
	for _, d := range []struct {
		key      string
		is       pipeline.Duration
		min, max time.Duration
	}{
		{"session_timeout", c.SessionTimeout, minGroupTimeout, maxWireTime},
		{"rebalance_timeout", c.RebalanceTimeout, minGroupTimeout, maxWireTime},
		{"max_fetch_wait", c.MaxFetchWait, minFetchWait, time.Minute},
	} {
		if d.is.Std() < d.min || d.is.Std() > d.max {
			bad(d.key, "must be from %s to %s, not %s", d.min, d.max, d.is)
		}
	}
	if c.RevokeTimeout <= 0 {
		bad("revoke_timeout", "must be above 0")
	}
	if c.RevokeTimeout+c.Autocommit.Timeout >= c.RebalanceTimeout {
		bad("rebalance_timeout", "must be more than revoke_timeout (%s) and autocommit.timeout (%s) together; "+
			"otherwise the group excludes a member that waits for its batches", c.RevokeTimeout, c.Autocommit.Timeout)
	}
	for _, size := range []struct {
		key     string
		is, max pipeline.ByteSize
	}{{"min_fetch_size", c.MinFetchSize, maxFetchSize}, {"max_fetch_size", c.MaxFetchSize, maxFetchSize},
		{"max_partition_fetch_size", c.MaxPartitionFetchSize, maxFetchSize},
		{"max_decompressed_batch_size", c.MaxDecompressedBatchSize, math.MaxInt32}} {
		if size.is < 1 || size.is > size.max {
			bad(size.key, "must be from 1 byte to %s", size.max)
		}
	}
	if c.MinFetchSize > c.MaxFetchSize {
		bad("min_fetch_size", "must be at most max_fetch_size (%s)", c.MaxFetchSize)
	}
	if c.MaxQueuedSize < 1 {
		bad("max_queued_size", "must be above 0")
	}
	for _, n := range []struct {
		key     string
		is, max int
	}{{"max_concurrent", c.MaxConcurrent, 10_000}, {"max_concurrent_fetches", c.MaxConcurrentFetches, 1_000}} {
		if n.is < 1 || n.is > n.max {
			bad(n.key, "must be from 1 to %d, not %d", n.max, n.is)
		}
	}
	return errors.Join(errs...)
}

// Validate checks that a batch can have records.
func (c *batchConfig) Validate() error {
	if c.MaxSize < 1 {
		return pipeline.BadKey("max_size", "must be above 0")
	}
	if c.MaxSpans < 1 {
		return pipeline.BadKey("max_spans", "must be above 0")
	}
	return nil
}

// Validate checks the durations.
func (c *commitConfig) Validate() error {
	if c.Interval <= 0 {
		return pipeline.BadKey("interval", "must be above 0")
	}
	if c.Timeout <= 0 {
		return pipeline.BadKey("timeout", "must be above 0")
	}
	return nil
}

// Validate checks the delays.
func (c *backoffConfig) Validate() error {
	if c.InitialInterval <= 0 {
		return pipeline.BadKey("initial_interval", "must be above 0")
	}
	if c.MaxInterval < c.InitialInterval {
		return pipeline.BadKey("max_interval", "must be at least initial_interval (%s), not %s", c.InitialInterval, c.MaxInterval)
	}
	return nil
}

// Validate checks the topic and the limits.
func (c *deadLetterConfig) Validate() error {
	var errs []error
	if c.Topic != "" {
		errs = append(errs, kafka.ValidateTopic("topic", c.Topic))
	}
	if c.MaxSize < 1 {
		errs = append(errs, pipeline.BadKey("max_size", "must be above 0"))
	}
	if c.Timeout <= 0 {
		errs = append(errs, pipeline.BadKey("timeout", "must be above 0"))
	}
	return errors.Join(errs...)
}
