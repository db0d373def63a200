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

// The flags of an agent.

// ThriftUDPReceiver has the processors under the names that the interface gives them, and under those that existing set-ups use.
func ThriftUDPReceiver() []pipeline.Flag {
	return slices.Concat(
		processorFlags("tracing-compact", "compact"), processorFlags("jaeger-compact", "compact"),
		processorFlags("tracing-binary", "binary"), processorFlags("jaeger-binary", "binary"),
		processorFlags("zipkin-compact", "zipkin"))
}

// processorFlags are the flags of one UDP listener, whose block is key.
func processorFlags(name, key string) []pipeline.Flag {
	prefix := "processor." + name + "."
	return []pipeline.Flag{
		{Name: prefix + "server-host-port", Key: key + "::endpoint", Value: pipeline.HostPort, Doc: "Where the agent listens over UDP."},
		{Name: prefix + "server-max-packet-size", Block: key, Key: key + "::max_packet_size", Value: packetSize,
			Doc: "Greatest datagram in bytes."},
		{Name: prefix + "server-queue-size", Block: key, Key: key + "::queue_size", Value: packets,
			Doc: "Datagrams that may wait for a worker; each stands for 64 KiB, which the greatest that clients send takes."},
		{Name: prefix + "server-socket-buffer-size", Block: key, Key: key + "::socket_buffer", Value: number,
			Doc: "Bytes to ask of the system for what waits to be read; 0: the system's default."},
		{Name: prefix + "workers", Block: key, Key: key + "::workers", Value: number,
			Doc: "How many sets of datagrams are worked on at once."},
	}
}

// NativeExporter returns the flags of exporter native.
func NativeExporter() []pipeline.Flag {
	return slices.Concat([]pipeline.Flag{
		{Name: "reporter.type", Instead: "exporters and pipelines say where spans go; the one that sends them to a collector is native"},
		{Name: "reporter.grpc.host-port", Key: "endpoint", Value: hostPorts, Doc: "Collectors to send to, host:port, separated by commas."},
		{Name: "reporter.grpc.retry.max", Instead: "sends are tried again for as long as exporters.native.retry_on_failure.max_elapsed_time says"},
		{Name: "reporter.grpc.discovery.min-peers", Instead: "all addresses are connected to and share the load"},
	}, clientTLSFlags("reporter.grpc", "tls"))
}

// clientTLSFlags are the flags of a connection's TLS, whose block is at key.
func clientTLSFlags(prefix, key string) []pipeline.Flag {
	prefix, key = prefix+".tls.", key+"::"
	flags := []pipeline.Flag{
		{Name: "ca", Key: "ca_file", Doc: "PEM file of the authorities to trust; without it those of the system."},
		{Name: "cert", Key: "cert_file", Doc: "PEM file of the client's certificate."},
		{Name: "key", Key: "key_file", Doc: "PEM file of the certificate's key."},
		{Name: "server-name", Key: "server_name_override", Doc: "Name that the server's certificate must have."},
		{Name: "skip-host-verify", Key: "insecure_skip_verify", Switch: true, Doc: "Whether to believe any certificate."},
	}
	insecure := key + "insecure"
	for i := range flags {
		f := &flags[i]
		f.Name, f.Key, f.Unless, f.Missing = prefix+f.Name, key+f.Key, insecure, withoutTLS(prefix)
	}
	return append(flags, pipeline.Flag{Name: prefix + "enabled", Key: insecure, Switch: true, Value: negation, Doc: "Whether to connect with TLS."})
}

// ResourceTags returns the flags of processor resource_tags.
func ResourceTags() []pipeline.Flag {
	const doc = "Tags to add to the process of every span: k=v,k2=${NAME:default}; a tag whose variable is unset and has no default is left out."
	return []pipeline.Flag{
		{Name: "agent.tags", Key: "tags", Adds: true, Value: tags, Doc: doc},
		{Name: "collector.tags", Key: "tags", Adds: true, Value: tags, Doc: doc},
	}
}

// tags reads `k=v,k2=${NAME:default}`.
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

// variable returns what stands in `${...}`.
func variable(value string) (inside string, ok bool) {
	inside, ok = strings.CutPrefix(value, "${")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(inside, "}")
}

// fromEnv reads `NAME` or `NAME:default`, which may be an empty one. An empty variable is as good as none.
func fromEnv(variable string) (value string, ok bool) {
	name, otherwise, ok := strings.Cut(variable, ":")
	if set := os.Getenv(name); set != "" {
		return set, true
	}
	return otherwise, ok
}

// hostPorts reads addresses with commas, and maybe spaces, between them.
func hostPorts(text string) (any, error) {
	var addresses []string
	for address := range strings.SplitSeq(text, ",") {
		if address = strings.TrimSpace(address); address != "" {
			addresses = append(addresses, address)
		}
	}
	if len(addresses) == 0 {
		return nil, fmt.Errorf("%q names no address; write host:port", text)
	}
	return strings.Join(addresses, ","), nil
}

// Limits of a UDP listener's keys, in bytes, and what a datagram takes in its queue: clients send up to 65,000 bytes in one.
const (
	datagram      = 64 << 10
	leastQueue    = 1 << 20
	greatestQueue = 64 << 30
	greatestSize  = 65_527
)

// packets converts a number of datagrams to the bytes that they take at most: nothing is dropped that the number had room for.
func packets(text string) (any, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return nil, fmt.Errorf("%q is not a number of packets from 1 to %d", text, math.MaxInt32)
	}
	return min(max(n*datagram, leastQueue), greatestQueue), nil
}

// packetSize takes what is more than a datagram can have for the most that one can.
func packetSize(text string) (any, error) {
	n, err := number(text)
	if n, ok := n.(int); ok {
		return min(n, greatestSize), nil
	}
	return nil, err
}

func number(text string) (any, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("%q is not a number", text)
	}
	return n, nil
}

func negation(text string) (any, error) {
	on, err := strconv.ParseBool(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not true or false", text)
	}
	return !on, nil
}
