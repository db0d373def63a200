package kafka_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/tracing-backend/tracing/test/engines/kafka/broker"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// partitions is the number of partitions of the topics of tests.
const partitions = 4

// TestRead writes records with the libraries of Jaeger, Zipkin and the Collector, and reads them
// with the receiver.
func TestRead(t *testing.T) {
	c := anyBrokers(t)
	for _, e := range encodings {
		t.Run(e.name, func(t *testing.T) {
			topic, spans := c.Topic(t, partitions), testSpans()
			client, err := broker.Client(c.Brokers()...)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			for _, r := range e.write(t, spans) {
				r.Topic = topic
				if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
			p := inprocess.StartYAML(t, fmt.Sprintf(readerConfig, strings.Join(c.Brokers(), ", "), topic, e.name, broker.UniqueName(), t.TempDir()))
			awaitStored(t, p, spans)
		})
	}
}

const readerConfig = `
receivers: {kafka: {brokers: [%s], topic: %s, encoding: %s, group_id: %s}}
exporters: {memory: }
extensions: {query: {storage: memory, http: {endpoint: "localhost:0"}, grpc: {endpoint: "localhost:0"}}}
service:
  data_dir: %q
  extensions: [query]
  pipelines: {traces: {receivers: [kafka], exporters: [memory]}}
`

// awaitStored waits until a program has stored as many spans as given, and compares them.
func awaitStored(t *testing.T, p *inprocess.Program, want []span) {
	t.Helper()
	var got []span
	harness.Poll(t, fmt.Sprintf("%d spans are stored", len(want)), func() bool {
		got = got[:0]
		for _, id := range traceIDs(want) {
			got = append(got, storedTrace(t, p, id)...)
		}
		return len(got) >= len(want)
	})
	if lines(got) != lines(want) {
		t.Errorf("spans differ; got\n%s\nwant\n%s", lines(got), lines(want))
	}
}

// storedTrace returns the spans of a trace, or none if it does not exist.
func storedTrace(t *testing.T, p *inprocess.Program, id string) []span {
	t.Helper()
	status, body := harness.Fetch(t, p.QueryURL()+"/api/v3/traces/"+id)
	if status == http.StatusNotFound {
		return nil
	}
	var answer struct{ Result json.RawMessage }
	if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK {
		t.Fatalf("trace %s: status %d, %v: %s", id, status, err, body)
	}
	td, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces(answer.Result)
	if err != nil {
		t.Fatal(err)
	}
	return fromOTLP(td)
}

// traceIDs returns the different trace ids of spans.
func traceIDs(spans []span) (ids []string) {
	seen := map[string]bool{}
	for _, s := range spans {
		if !seen[s.traceID()] {
			ids = append(ids, s.traceID())
		}
		seen[s.traceID()] = true
	}
	return ids
}

// TestWrite writes records with the exporter, and reads them with the libraries of Jaeger, Zipkin
// and the Collector. Records of one trace have the key that those programs write, and the traces of
// every record are in the partition in which Kafka's Java client puts them.
func TestWrite(t *testing.T) {
	c := anyBrokers(t)
	for _, e := range encodings {
		t.Run(e.name, func(t *testing.T) {
			topic, spans := c.Topic(t, partitions), testSpans()
			p := inprocess.StartYAML(t, fmt.Sprintf(writerConfig, strings.Join(c.Brokers(), ", "), topic, e.name, t.TempDir()))
			post(t, p, spans)
			var got []span
			for _, r := range consume(t, c, topic, func(records []*kgo.Record) bool { return spansIn(t, e, records) >= len(spans) }) {
				in, err := e.read(r.Value)
				if err != nil {
					t.Fatalf("%s cannot be read: %v: %x", e.name, err, r.Value)
				}
				got = append(got, in...)
				checkKey(t, e, r, traceIDs(in))
			}
			if lines(got) != lines(spans) {
				t.Errorf("spans differ; got\n%s\nwant\n%s", lines(got), lines(spans))
			}
		})
	}
}

const writerConfig = `
receivers: {otlp: {protocols: {http: {endpoint: "localhost:0"}}}}
exporters: {kafka: {brokers: [%s], topic: %s, encoding: %s}}
service:
  data_dir: %q
  pipelines: {traces: {receivers: [otlp], exporters: [kafka]}}
`

// post sends spans to the OTLP receiver of a program.
func post(t *testing.T, p *inprocess.Program, spans []span) {
	t.Helper()
	body, err := ptraceotlp.NewExportRequestFromTraces(toOTLP(spans)).MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	if status, answer := p.PostOTLP("application/x-protobuf", string(body)); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, answer)
	}
}

// checkKey checks the key and the partition of a record with spans of the given traces.
func checkKey(t *testing.T, e encoding, r *kgo.Record, traces []string) {
	t.Helper()
	if len(traces) == 1 && string(r.Key) != e.key(traces[0]) {
		t.Errorf("record with trace %s has the key %q, want %q", traces[0], r.Key, e.key(traces[0]))
	}
	if len(traces) > 1 && !e.joins {
		t.Errorf("record has %d traces", len(traces))
	}
	for _, id := range traces {
		// The default partitioner of Kafka's Java client, with murmur2.
		keyed := &kgo.Record{Key: []byte(e.key(id))}
		if want := kgo.StickyKeyPartitioner(nil).ForTopic(r.Topic).Partition(keyed, partitions); int(r.Partition) != want {
			t.Errorf("trace %s is in partition %d, want %d", id, r.Partition, want)
		}
	}
}

// consume reads a topic from its start until enough records are read.
func consume(t *testing.T, c *broker.Cluster, topic string, enough func([]*kgo.Record) bool) (records []*kgo.Record) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...), kgo.ConsumeTopics(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // only a failing test reaches it
	defer cancel()
	for !enough(records) {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("after %d records: %v", len(records), err)
		}
		records = append(records, fetches.Records()...)
	}
	return records
}

// spansIn returns the number of spans in records.
func spansIn(t *testing.T, e encoding, records []*kgo.Record) (n int) {
	t.Helper()
	for _, r := range records {
		in, err := e.read(r.Value)
		if err != nil {
			t.Fatalf("%s cannot be read: %v: %x", e.name, err, r.Value)
		}
		n += len(in)
	}
	return n
}

// TestUnchanged checks that with the encoding otlp_proto and without keys, a request becomes a
// record of the same bytes.
func TestUnchanged(t *testing.T) {
	c := anyBrokers(t)
	topic := c.Topic(t, partitions)
	p := inprocess.StartYAML(t, strings.Replace(fmt.Sprintf(writerConfig, strings.Join(c.Brokers(), ", "), topic, "otlp_proto", t.TempDir()),
		"encoding:", "key: none, encoding:", 1))
	body, err := ptraceotlp.NewExportRequestFromTraces(toOTLP(testSpans())).MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	if status, answer := p.PostOTLP("application/x-protobuf", string(body)); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, answer)
	}
	records := consume(t, c, topic, func(records []*kgo.Record) bool { return len(records) > 0 })
	if len(records) != 1 || records[0].Key != nil || !bytes.Equal(records[0].Value, body) {
		t.Errorf("%d records, the first with the key %q and %d bytes; want one without a key and with the %d bytes of the request",
			len(records), records[0].Key, len(records[0].Value), len(body))
	}
}
