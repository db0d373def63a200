package compatflags

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

// ThriftUDPReceiver returns the flags of the `thriftudp` receiver. Each processor has two names:
// the documented one and the one in existing command lines.
func ThriftUDPReceiver() []pipeline.Flag {
	compact := processorFlags("jaeger-compact", "compact")
	compact[0].Distinctive = "PROCESSOR_JAEGER_"
	return slices.Concat(processorFlags("tracing-compact", "compact"), compact,
		processorFlags("tracing-binary", "binary"), processorFlags("jaeger-binary", "binary"),
		processorFlags("zipkin-compact", "zipkin"))
}

// processorFlags returns the flags of the UDP listener at key.
func processorFlags(name, key string) []pipeline.Flag {
	prefix := "processor." + name + "."
	return []pipeline.Flag{
		{Name: prefix + "server-host-port", Key: key + "::endpoint", Value: hostPort, Doc: "UDP address on which to receive datagrams."},
		{Name: prefix + "server-max-packet-size", Block: key, Key: key + "::max_packet_size", Value: packetSize,
			Doc: "Maximum datagram size in bytes."},
		{Name: prefix + "server-queue-size", Block: key, Key: key + "::queue_size", Value: packets,
			Doc: "Maximum number of datagrams that wait for a worker. Each counts as 64 KiB, the largest that clients send."},
		{Name: prefix + "server-socket-buffer-size", Block: key, Key: key + "::socket_buffer", Value: number,
			Doc: "Size of the socket receive buffer in bytes. 0 uses the default of the operating system."},
		{Name: prefix + "workers", Block: key, Key: key + "::workers", Value: number,
			Doc: "Number of concurrent workers that process datagrams."},
	}
}

// NativeExporter returns the flags of the `native` exporter.
func NativeExporter() []pipeline.Flag {
	return slices.Concat([]pipeline.Flag{
		{Name: "reporter.type", Always: "grpc",
			Instead: "the exporters of the pipelines determine where spans go; the native exporter sends them to a collector"},
		{Name: "reporter.grpc.host-port", Distinctive: "REPORTER_GRPC_", Key: "endpoint", Value: hostPorts,
			Doc: "Addresses of collectors, host:port, separated by commas."},
		{Name: "reporter.grpc.retry.max", Instead: "retries are limited by time: set exporters.native.retry_on_failure.max_elapsed_time"},
		{Name: "reporter.grpc.discovery.min-peers", Instead: "the agent connects to all addresses and balances the load"},
	}, clientTLSFlags("reporter.grpc", "tls"),
		family("reporter.tchannel", "agents send spans over gRPC: set --reporter.grpc.host-port",
			"discovery.conn-check-timeout discovery.min-peers host-port report-timeout", ""))
}

// clientTLSFlags returns the flags for the TLS block of a client at key.
func clientTLSFlags(prefix, key string) []pipeline.Flag {
	prefix += ".tls."
	insecure := key + "::insecure"
	flags := tlsKeys(prefix, key, "endpoint")
	for i := range flags {
		flags[i].Unless = insecure
	}
	return append(flags, pipeline.Flag{Name: prefix + "enabled", Key: insecure, Switch: true, Value: negation, Doc: "Whether to use TLS."})
}

// tlsKeys returns the flags for the keys of a client's TLS block at key. address is the name of the
// key for the server's address.
func tlsKeys(prefix, key, address string) []pipeline.Flag {
	flags := []pipeline.Flag{
		{Name: "ca", Key: "ca_file",
			Doc: "File of trusted certificate authorities in PEM format. Empty trusts the system's authorities."},
		{Name: "cert", Key: "cert_file", Doc: "Client certificate file in PEM format."},
		{Name: "key", Key: "key_file", Doc: "Private key file in PEM format."},
		{Name: "server-name", Key: "server_name_override",
			Doc: "Name that the server certificate must contain, instead of the host of the " + address + "."},
		{Name: "skip-host-verify", Key: "insecure_skip_verify", Switch: true, Doc: "Whether to accept any server certificate."},
	}
	for i := range flags {
		f := &flags[i]
		f.Name, f.Key, f.Missing = prefix+f.Name, below(key, f.Key), withoutTLS(prefix)
	}
	return flags
}

// ResourceTags returns the flags of the `resource_tags` processor.
func ResourceTags() []pipeline.Flag {
	const doc = "Tags to add to the process of every span, as key=value,key2=${NAME:default}. " +
		"A tag is omitted if its environment variable NAME is not set and it has no default."
	return []pipeline.Flag{
		{Name: "agent.tags", Key: "tags", Adds: true, Value: tags, Doc: doc},
		{Name: "collector.tags", Key: "tags", Adds: true, Value: tags, Doc: doc},
		// The variable JAEGER_TAGS is for clients.
		{Name: "jaeger.tags", Key: "tags", Adds: true, CommandLine: true, Value: tags, Doc: doc},
	}
}

// tags parses `k=v,k2=${NAME:default}`.
func tags(text string) (any, error) {
	out := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(pair, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok || key == "" {
			return nil, fmt.Errorf("%q is not a tag; write key=value,other=value", pair)
		}
		if inside, ok := variable(value); ok {
			if value, ok = fromEnv(inside); !ok {
				continue
			}
		}
		out[key] = value
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}

// variable returns the content of `${...}`.
func variable(value string) (inside string, ok bool) {
	inside, ok = strings.CutPrefix(value, "${")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(inside, "}")
}

// fromEnv returns the value of `NAME` or `NAME:default`. A variable that is set to the empty string
// counts as not set. The default may be empty.
func fromEnv(variable string) (value string, ok bool) {
	name, otherwise, ok := strings.Cut(variable, ":")
	if set := os.Getenv(name); set != "" {
		return set, true
	}
	return otherwise, ok
}

// hostPorts parses addresses separated by commas and optional spaces.
func hostPorts(text string) (any, error) {
	list, err := addresses(text)
	return strings.Join(list, ","), err
}

// addresses returns addresses separated by commas and optional spaces.
func addresses(text string) (list []string, _ error) {
	for address := range strings.SplitSeq(text, ",") {
		if address = strings.TrimSpace(address); address != "" {
			list = append(list, address)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no address in %q; write host:port", text)
	}
	return list, nil
}

// Limits of the keys of a UDP listener, in bytes. datagramSize is the assumed size of a datagram in
// the queue: clients send up to 65,000 bytes in one.
const (
	datagramSize  = 64 << 10
	minQueueSize  = 1 << 20
	maxQueueSize  = 64 << 30
	maxPacketSize = 65_527
)

// packets converts a number of datagrams to their maximum size in bytes, so that the queue holds at
// least that number.
func packets(text string) (any, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return nil, fmt.Errorf("%q is not a number of packets from 1 to %d", text, math.MaxInt32)
	}
	return min(max(n*datagramSize, minQueueSize), maxQueueSize), nil
}

// packetSize limits the number to the maximum size of a datagram.
func packetSize(text string) (any, error) {
	n, err := number(text)
	if n, ok := n.(int); ok {
		return min(n, maxPacketSize), nil
	}
	return nil, err
}

// number parses a number that is at least 0.
func number(text string) (any, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("%q is not a number", text)
	}
	return n, nil
}

// negation parses a boolean and returns its opposite.
func negation(text string) (any, error) {
	on, err := strconv.ParseBool(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not true or false", text)
	}
	return !on, nil
}
