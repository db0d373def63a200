package bench_test

import (
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/harness"
)

// kafkaServer is an environment variable. If it is set, the test program is a Kafka broker that
// acknowledges records and discards them.
const kafkaServer = "TRACING_TEST_KAFKA_SERVER"

func runKafkaServer() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(12, "otlp_spans"), kfake.BlackholeProduce())
	if err != nil {
		panic(err)
	}
	fmt.Println(cluster.ListenAddrs()[0])
	io.Copy(io.Discard, os.Stdin) //nolint:errcheck // the broker stops at the end of the input
	cluster.Close()
}

// startSelf starts the test program as the server that an environment variable names, and returns
// its address.
func startSelf(b *testing.B, variable string) (cmd *exec.Cmd, address string, stop func()) {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd = exec.Command(self)
	cmd.Env = append(os.Environ(), variable+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	if _, err := fmt.Fscanln(stdout, &address); err != nil {
		b.Fatal(err)
	}
	return cmd, address, func() {
		stdin.Close()
		cmd.Wait() //nolint:errcheck // only the CPU time matters
	}
}

const kafkaBenchConfig = `
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
processors: {batch: }
exporters: {kafka: {brokers: [%q], %s}}
extensions: {admin: {endpoint: "localhost:0"}}
service:
  extensions: [admin]
  pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [kafka]}}
`

// measureKafka measures otlp -> batch -> kafka with additional settings of the exporter. The broker
// is another process. It returns the CPU time and the bytes that the broker gets, per span.
func measureKafka(b *testing.B, requests iter.Seq[bench.Request], settings string) (cpu, bytes float64) {
	_, broker, stopBroker := startSelf(b, kafkaServer)
	defer stopBroker()
	p := harness.RunYAML(b, fmt.Sprintf(kafkaBenchConfig, broker, settings))
	cpu = measureCPU(b, p.OTLPGRPC(), requests, p.Cmd, func() {
		for name, value := range harness.Metrics(b, p.AdminURL()) {
			if strings.HasPrefix(name, "tracing_kafka_producer_bytes_total") {
				bytes = value
			}
		}
		p.Terminate()
		checkSent(p, benchSpans())
	})
	return cpu, bytes / spansSent(p)
}

// BenchmarkKafka compares settings of the kafka exporter with F, as BenchmarkServer does.
func BenchmarkKafka(b *testing.B) {
	requests := slices.Collect(bench.New(1, time.Now()).Requests(benchSpans()+512*200, 512))
	all := repeated(requests)
	for _, settings := range []string{
		"key: trace_id", "key: trace_id, producer: {compression: zstd}", "key: trace_id, producer: {compression: lz4}",
		"key: trace_id, producer: {compression: snappy}", "key: trace_id, producer: {compression: gzip}",
		"key: none", "key: none, producer: {compression: zstd}",
		"key: none, producer: {compression: lz4}", "key: none, producer: {compression: snappy}",
		"encoding: jaeger_proto",
	} {
		b.Run(strings.NewReplacer(" ", "", "{", "", "}", "").Replace(settings), func(b *testing.B) {
			var floor, kafka, bytes float64
			for b.Loop() {
				floor += measureFloor(b, all)
				cpu, size := measureKafka(b, all, settings)
				kafka += cpu
				bytes = size
			}
			b.ReportMetric(kafka/floor, "kafka/F")
			b.ReportMetric(bytes, "bytes/span")
			b.ReportMetric(0, "ns/op")
		})
	}
}
