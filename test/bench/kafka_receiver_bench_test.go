package bench_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/harness"
)

const kafkaReceiverConfig = `
receivers: {kafka: {brokers: [%q], topic: %s, encoding: %s, group_id: %q}}
processors: {batch: }
exporters: {nop: }
extensions: {admin: {endpoint: "localhost:0"}}
service:
  extensions: [admin]
  pipelines: {traces: {receivers: [kafka], processors: [batch], exporters: [nop]}}
`

// filledTopic is a topic of a broker in this process, filled with records.
type filledTopic struct {
	*kfake.Cluster
	name, encoding string
	spans          float64
	groups         int // so far
}

// fillTopic writes the spans of requests to a topic of 12 partitions, in records of an encoding.
func fillTopic(b *testing.B, encoding string, compression kgo.CompressionCodec, requests iter.Seq[bench.Request]) *filledTopic {
	b.Helper()
	t := &filledTopic{name: "spans", encoding: encoding}
	var err error
	if t.Cluster, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(12, t.name)); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(t.Close)
	producer, err := kgo.NewClient(kgo.SeedBrokers(t.ListenAddrs()...), kgo.DefaultProduceTopic(t.name), kgo.DisableClientMetrics(),
		kgo.ProducerBatchCompression(compression))
	if err != nil {
		b.Fatal(err)
	}
	defer producer.Close()
	write := func(value []byte) {
		producer.Produce(b.Context(), &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				b.Error(err)
			}
		})
	}
	for r := range requests {
		t.spans += float64(r.Spans)
		if encoding == "otlp_proto" {
			write(r.Body)
			continue
		}
		if err := writeSpans(r.Body, write); err != nil {
			b.Fatal(err)
		}
	}
	if err := producer.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	return t
}

// writeSpans writes each span of a request as an encoded span of the native model.
func writeSpans(request []byte, write func([]byte)) error {
	const chunkHeader = 1 // the tag of the only field of a chunk
	c := native.NewChunks(native.ChunkLimits{Spans: 1, Bytes: 1 << 20}, func(chunk []byte) error {
		length := 1
		for chunk[length] >= 0x80 {
			length++
		}
		write(slices.Clone(chunk[chunkHeader+length:]))
		return nil
	})
	if err := otlpdata.Walk(request, c); err != nil {
		return err
	}
	return c.Finish()
}

// measure returns the CPU time per span of a process that consumes the whole topic, in nanoseconds.
func (t *filledTopic) measure(b *testing.B) float64 {
	b.Helper()
	t.groups++
	group := fmt.Sprint("group-", t.groups)
	p := harness.RunYAML(b, fmt.Sprintf(kafkaReceiverConfig, t.ListenAddrs()[0], t.name, t.encoding, group))
	_, err := t.WaitGroupInfo(b.Context(), group, func(g *kfake.GroupInfo) bool {
		for _, info := range t.PartitionInfos(t.name) {
			if g == nil || g.Commits[t.name][info.Partition].Offset < info.HighWatermark {
				return false
			}
		}
		return true
	})
	if err != nil {
		b.Fatal(err)
	}
	p.Terminate()
	checkSent(p, int(t.spans))
	cpu := p.Cmd.ProcessState.UserTime() + p.Cmd.ProcessState.SystemTime()
	return float64(cpu.Nanoseconds()) / t.spans
}

// BenchmarkKafkaReceiver measures the CPU time per span of a process with kafka -> batch -> nop,
// and reports its ratio to F, as BenchmarkServer does. Records of otlp_proto have 512 or 8 spans,
// those of jaeger_proto one. The broker is not in the process.
func BenchmarkKafkaReceiver(b *testing.B) {
	floorRequests := slices.Collect(bench.New(1, time.Now()).Requests(benchSpans()+512*200, 512))
	for _, c := range []struct {
		encoding    string
		perRecord   int
		compression kgo.CompressionCodec
		name        string
	}{
		{"otlp_proto", 512, kgo.ZstdCompression(), "zstd"},
		{"otlp_proto", 512, kgo.NoCompression(), "none"},
		{"otlp_proto", 8, kgo.ZstdCompression(), "zstd"},
		{"jaeger_proto", 1, kgo.ZstdCompression(), "zstd"},
	} {
		b.Run(fmt.Sprintf("%s,spans=%d,%s", c.encoding, c.perRecord, c.name), func(b *testing.B) {
			topic := fillTopic(b, c.encoding, c.compression, bench.New(1, time.Now()).Requests(benchSpans(), c.perRecord))
			var floor, kafka float64
			n := 0
			for b.Loop() {
				floor += measureFloor(b, repeated(floorRequests))
				kafka += topic.measure(b)
				n++
			}
			b.ReportMetric(kafka/float64(n), "ns/span")
			b.ReportMetric(kafka/floor, "kafka/F")
			b.ReportMetric(0, "ns/op")
		})
	}
}
