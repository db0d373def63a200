package kafka

import (
	"compress/gzip"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tracing-backend/tracing/internal/kafka"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
)

type config struct {
	kafka.ClientConfig
	client.NextHopConfig
	pipeline.Delivery
	Topic       string                               `yaml:"topic" doc:"Topic that records are written to."`
	Encoding    string                               `yaml:"encoding" doc:"Encoding of records: otlp_proto, otlp_json, jaeger_proto, jaeger_json, zipkin_proto or zipkin_json. Records of jaeger_proto and jaeger_json hold one span, others as many as fit."`
	Key         string                               `yaml:"key" doc:"Property that decides the partition of a span: trace_id, service or none (any partition). With none, requests in otlp_proto are written unchanged."`
	CreateTopic pipeline.Optional[createTopicConfig] `yaml:"create_topic" doc:"Settings of the topic, which is created if it does not exist."`
	Producer    producerConfig                       `yaml:"producer" doc:"Settings of the producer. It is idempotent and waits for all in-sync replicas."`
}

type createTopicConfig struct {
	Partitions        int               `yaml:"partitions" doc:"Number of partitions, which limits the number of consumers."`
	ReplicationFactor int               `yaml:"replication_factor" doc:"Number of brokers with each partition. min.insync.replicas is set to one less, but at least 1."`
	Retention         pipeline.Duration `yaml:"retention" doc:"Time for which records are kept (retention.ms)."`
	MaxBytes          pipeline.ByteSize `yaml:"max_bytes" doc:"Maximum size of a partition, after which the oldest records are deleted (retention.bytes). 0 disables the limit."`
}

type producerConfig struct {
	Compression       string            `yaml:"compression" doc:"Compression of record batches: none, gzip, lz4, snappy (three to four times smaller, little CPU time) or zstd (smallest, most CPU time)."`
	CompressionParams compressionParams `yaml:"compression_params" doc:"Parameters of the compression."`
	MaxMessageBytes   pipeline.ByteSize `yaml:"max_message_bytes" doc:"Maximum size of a record before compression, at most max.message.bytes of the topic. A larger span is rejected."`
	Linger            pipeline.Duration `yaml:"linger" doc:"Time for which a partition waits for more records, so that requests are larger. Used with sending_queue only."`
	MaxBufferedBytes  pipeline.ByteSize `yaml:"max_buffered_bytes" doc:"Maximum size of records that wait for acknowledgement. Further batches wait."`
	RequiredAcks      string            `yaml:"required_acks" doc:"Acknowledgements of a record: always all (by all in-sync replicas)."`
}

type compressionParams struct {
	Level int `yaml:"level" doc:"Compression level: 1 to 9 for gzip and lz4, 1 to 22 for zstd (in effect 1, 3, 6 or 10). 0 is the fastest."`
}

// Bounds of values, as in brokers and the client library.
const (
	minMessageBytes    = 1 << 10
	maxMessageBytes    = 1 << 29
	maxLinger          = time.Minute
	maxPartitions      = 100_000
	maxReplicas        = 1000
	maxGzipLevel       = 9
	maxZstdLevel       = 22
	allInSyncReplicas  = "all"
	defaultMaxMessage  = 1_000_000
	defaultMaxBuffered = 64 << 20
)

func defaults() config {
	delivery := pipeline.DefaultDelivery()
	delivery.Timeout = pipeline.Duration(15 * time.Second) // the election of a leader takes several seconds
	delivery.Retry.InitialInterval = pipeline.Duration(time.Second)
	return config{
		ClientConfig: kafka.DefaultClientConfig(), NextHopConfig: client.DefaultNextHopConfig(), Delivery: delivery,
		Topic: kafka.DefaultTopic, Encoding: kafka.OTLPProto, Key: kafka.KeyTraceID,
		CreateTopic: pipeline.Absent(createTopicConfig{Partitions: 12, ReplicationFactor: 3, Retention: pipeline.Duration(24 * time.Hour)}),
		Producer: producerConfig{Compression: "none", MaxMessageBytes: defaultMaxMessage, MaxBufferedBytes: defaultMaxBuffered,
			RequiredAcks: allInSyncReplicas},
	}
}

// linger returns how long a partition waits for more records. It is 0 without a sending queue,
// because then clients wait for the response.
func (c *config) linger() time.Duration {
	if q, on := c.Queue.Get(); on && q.Enabled {
		return c.Producer.Linger.Std()
	}
	return 0
}

// Warnings says that linger has no effect without a queue.
func (c *config) Warnings(time.Duration) error {
	if c.Producer.Linger == 0 || c.linger() > 0 {
		return nil
	}
	return pipeline.BadKey("producer::linger",
		"has no effect without sending_queue: clients wait for the response, so records are sent immediately")
}

// Validate checks the topic, the encoding, the key and the linger time.
func (c *config) Validate() error {
	errs := []error{kafka.ValidateTopic("topic", c.Topic), kafka.ValidateEncoding(c.Encoding)}
	if keys := []string{kafka.KeyTraceID, kafka.KeyService, kafka.KeyNone}; !slices.Contains(keys, c.Key) {
		errs = append(errs, pipeline.BadKey("key", "%q is not one of %s", c.Key, strings.Join(keys, ", ")))
	}
	if c.linger() >= c.Timeout.Std() && c.Timeout > 0 {
		errs = append(errs, pipeline.BadKey("producer::linger",
			"must be below timeout (%s), not %s; attempts would end before their records are sent", c.Timeout, c.Producer.Linger))
	}
	return errors.Join(errs...)
}

// Validate checks the numbers.
func (c *createTopicConfig) Validate() error {
	var errs []error
	if c.Partitions < 1 || c.Partitions > maxPartitions {
		errs = append(errs, pipeline.BadKey("partitions", "must be from 1 to %d, not %d", maxPartitions, c.Partitions))
	}
	if c.ReplicationFactor < 1 || c.ReplicationFactor > maxReplicas {
		errs = append(errs, pipeline.BadKey("replication_factor", "must be from 1 to %d, not %d", maxReplicas, c.ReplicationFactor))
	}
	if c.Retention.Std() < time.Second {
		errs = append(errs, pipeline.BadKey("retention", "must be at least 1s, not %s", c.Retention))
	}
	return errors.Join(errs...)
}

// minInSync returns min.insync.replicas of the topic.
func (c *createTopicConfig) minInSync() int { return max(1, c.ReplicationFactor-1) }

// Validate checks the compression and the limits.
func (c *producerConfig) Validate() error {
	var errs []error
	highest := map[string]int{"none": 0, "snappy": 0, "gzip": maxGzipLevel, "lz4": maxGzipLevel, "zstd": maxZstdLevel}
	if limit, ok := highest[c.Compression]; !ok {
		errs = append(errs, pipeline.BadKey("compression", "%q is not one of none, gzip, snappy, lz4, zstd", c.Compression))
	} else if level := c.CompressionParams.Level; level < 0 || level > limit {
		errs = append(errs, pipeline.BadKey("compression_params::level", "must be from 0 to %d for %s, not %d", limit, c.Compression,
			level))
	}
	if c.MaxMessageBytes < minMessageBytes || c.MaxMessageBytes > maxMessageBytes {
		errs = append(errs, pipeline.BadKey("max_message_bytes", "must be from %s to %s, not %s",
			pipeline.ByteSize(minMessageBytes), pipeline.ByteSize(maxMessageBytes), c.MaxMessageBytes))
	}
	if c.MaxBufferedBytes < c.MaxMessageBytes || c.MaxBufferedBytes > math.MaxInt32 {
		errs = append(errs, pipeline.BadKey("max_buffered_bytes", "must be from max_message_bytes (%s) to %d, not %s",
			c.MaxMessageBytes, math.MaxInt32, c.MaxBufferedBytes))
	}
	if c.Linger.Std() > maxLinger {
		errs = append(errs, pipeline.BadKey("linger", "must be at most %s, not %s", maxLinger, c.Linger))
	}
	if c.RequiredAcks != allInSyncReplicas {
		errs = append(errs, pipeline.BadKey("required_acks",
			"%q is not supported: acknowledged spans are always on all in-sync replicas; write %s", c.RequiredAcks, allInSyncReplicas))
	}
	return errors.Join(errs...)
}

// codec returns the compression. Its libraries number levels differently.
func (c *producerConfig) codec() kgo.CompressionCodec {
	level := c.CompressionParams.Level
	switch c.Compression {
	case "gzip":
		return kgo.GzipCompression().WithLevel(max(level, gzip.BestSpeed))
	case "snappy":
		return kgo.SnappyCompression()
	case "lz4":
		if level == 0 {
			return kgo.Lz4Compression().WithLevel(int(lz4.Fast))
		}
		return kgo.Lz4Compression().WithLevel(int(lz4.Level1) << (level - 1))
	case "zstd":
		return kgo.ZstdCompression().WithLevel(int(zstd.EncoderLevelFromZstd(level)))
	}
	return kgo.NoCompression()
}
