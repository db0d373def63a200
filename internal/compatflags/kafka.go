package compatflags

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

// KafkaExporter returns the flags of the `kafka` exporter.
func KafkaExporter() []pipeline.Flag {
	const (
		prefix   = "kafka.producer."
		allAcks  = "records are always acknowledged by all in-sync replicas; min.insync.replicas of the topic is their minimum number"
		grouping = "each batch of spans becomes at least one record for each partition, limited by exporters.kafka.producer.max_message_bytes"
	)
	return slices.Concat([]pipeline.Flag{
		{Name: prefix + "compression", Key: "producer::compression", Value: lower,
			Doc: "Compression of records: none, gzip, snappy, lz4 or zstd."},
		{Name: prefix + "max-message-bytes", Key: "producer::max_message_bytes", Value: number,
			Doc: "Maximum size of a record in bytes, before compression."},
		{Name: prefix + "batch-linger", Key: "producer::linger",
			Doc: "Time for which records wait for others to the same partition, so that requests are larger. Used with a sending queue only."},
		{Name: prefix + "required-acks", Always: "all", Instead: allAcks},
		{Name: prefix + "compression-level", Key: "producer::compression_params::level", Value: number,
			Doc: "Compression level; 0 selects the fastest."},
		{Name: prefix + "batch-size", Always: "0", Instead: grouping},
		{Name: prefix + "batch-min-messages", Always: "0", Instead: grouping},
		{Name: prefix + "batch-max-messages", Always: "0", Instead: grouping},
		{Name: "multi-tenancy.header", Key: "tenant_header", Doc: "Header that names the tenant."},
	}, kafkaClient(prefix), kafkaOld())
}

// KafkaReceiver returns the flags of the `kafka` receiver, which are the flags of an ingester.
func KafkaReceiver() []pipeline.Flag {
	const prefix = "kafka.consumer."
	return slices.Concat([]pipeline.Flag{
		{Name: prefix + "group-id", Key: "group_id", Doc: "Consumer group, whose members divide the partitions among them."},
		{Name: prefix + "client-id", Key: "client_id", Doc: "Name by which brokers know the process."},
		{Name: prefix + "rack-id", Key: "rack_id", Doc: "Rack of the process, so that it reads from the nearest replica."},
		{Name: prefix + "fetch-max-message-bytes", Key: "max_partition_fetch_size", Value: number,
			Doc: "Maximum number of bytes of each partition in one response of a broker."},
		{Name: "ingester.parallelism", Instead: "each partition has one worker, which keeps the order of its records; " +
			"set receivers.kafka.max_concurrent to limit the batches that are processed at the same time"},
		{Name: "ingester.deadlockInterval", Always: "0",
			Instead: "the metric tracing_kafka_consumer_lag_seconds shows a partition whose records are not stored"},
	}, kafkaClient(prefix), kafkaOld(), tenancyFlags(""))
}

// kafkaClient returns the flags for the connection, the topic and the encoding.
func kafkaClient(prefix string) []pipeline.Flag {
	const (
		sasl        = "auth::sasl"
		credentials = "only used with --%sauthentication=plaintext"
		kerberos    = "Kerberos is not supported: use plaintext with the mechanism SCRAM-SHA-512, or tls with client certificates"
	)
	flags := slices.Concat([]pipeline.Flag{
		{Name: prefix + "brokers", Key: "brokers", Value: list, Doc: "Addresses of brokers, host:port, separated by commas."},
		{Name: prefix + "topic", Key: "topic", Doc: "Name of the topic."},
		{Name: prefix + "encoding", Key: "encoding", Value: kafkaEncoding,
			Doc: "Encoding of records: protobuf or json for one Jaeger span in each record, or a value of the key encoding."},
		{Name: prefix + "protocol-version", Instead: "the version of the protocol is negotiated with the brokers"},
		{Name: prefix + "authentication", Key: sasl, Selects: true,
			Value: authentication("plaintext", kerberos, map[string]string{"mechanism": "PLAIN"}),
			Doc:   "How to authenticate to brokers: none, tls or plaintext, which is SASL with a user and a password."},
		{Name: prefix + "authentication", Key: "tls", Selects: true, Value: authentication("tls", kerberos, struct{}{})},
		{Name: prefix + "plaintext.username", Block: sasl, Key: sasl + "::username", Optional: fmt.Sprintf(credentials, prefix),
			Doc: "Name of the user."},
		{Name: prefix + "plaintext.password", Block: sasl, Key: sasl + "::password", Optional: fmt.Sprintf(credentials, prefix),
			Doc: "Password of the user."},
		{Name: prefix + "plaintext.mechanism", Block: sasl, Key: sasl + "::mechanism", Value: upper,
			Optional: fmt.Sprintf(credentials, prefix), Doc: "SASL mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."},
	}, family(strings.TrimSuffix(prefix, "."), kerberos,
		"kerberos.config-file kerberos.keytab-file kerberos.password kerberos.realm kerberos.service-name kerberos.username",
		"kerberos.disable-fast-negotiation kerberos.use-keytab"))
	for i := range flags {
		if strings.Contains(flags[i].Name, ".kerberos.") {
			flags[i].Family = prefix + "kerberos"
		}
	}
	flags = append(flags, pipeline.Flag{Name: prefix + "tls", Key: "tls", Presence: true, Doc: "Earlier name of " + prefix + "tls.enabled."})
	return append(flags, optionalTLSFlags(prefix+"tls.")...)
}

// kafkaOld returns the flags of versions before 1.9, for both directions. Other programs have
// variables such as KAFKA_BROKERS.
func kafkaOld() []pipeline.Flag {
	return []pipeline.Flag{
		{Name: "kafka.brokers", Key: "brokers", Value: list, CommandLine: true,
			Doc: "Earlier name of kafka.producer.brokers and kafka.consumer.brokers."},
		{Name: "kafka.topic", Key: "topic", CommandLine: true, Doc: "Earlier name of kafka.producer.topic and kafka.consumer.topic."},
		{Name: "kafka.encoding", Key: "encoding", Value: kafkaEncoding, CommandLine: true,
			Doc: "Earlier name of kafka.producer.encoding and kafka.consumer.encoding."},
	}
}

// kafkaEncoding translates the names of Jaeger 1.
func kafkaEncoding(text string) (any, error) {
	switch text {
	case "protobuf":
		return "jaeger_proto", nil
	case "json":
		return "jaeger_json", nil
	}
	return strings.ReplaceAll(text, "-", "_"), nil
}

// authentication returns a [pipeline.Flag.Value] that selects a block if the text is a method.
func authentication(method, kerberos string, block any) func(string) (any, error) {
	return func(text string) (any, error) {
		switch text = strings.ToLower(strings.TrimSpace(text)); text {
		case method:
			return block, nil
		case "", "none", "plaintext", "tls":
			return nil, nil
		case "kerberos":
			return nil, errors.New(kerberos)
		}
		return nil, fmt.Errorf("%q is not one of none, tls, plaintext", text)
	}
}
