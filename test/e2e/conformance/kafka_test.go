package conformance_test

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tracing-backend/tracing/exporters/kafka"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/soak"
)

// kafkaReceiver is skipped: the outcome of a record is its committed offset, and a record of a
// receiver that was stopped has none, which only the package of the receiver can see.
func kafkaReceiver(t *testing.T) {
	t.Skip("TestConformance in receivers/kafka runs the suite for it")
}

// kafkaExporter writes to a topic with one partition: a request whose records have different
// outcomes is not for this suite, because a retry continues with some of them.
func kafkaExporter(t *testing.T) {
	for _, key := range []string{"trace_id", "service", "none"} {
		t.Run(key, func(t *testing.T) {
			if key != "trace_id" {
				soak.SkipIfRaced(t)
			}
			pipelinetest.Exporter(t, kafka.Factory(), pipelinetest.ExporterOptions{
				NoPartialSuccess: true,
				NoTenant:         true, // a record batch, whose records have one outcome, may have several
				Config: func(tb testing.TB, next pipeline.Consumer) string {
					return fmt.Sprintf("{brokers: [%q], key: %s}", startBroker(tb, next), key)
				},
			})
		})
	}
}

// startBroker starts a fake broker that passes all records to next and answers with the outcome.
func startBroker(tb testing.TB, next pipeline.Consumer) (address string) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "otlp_spans"),
		kfake.ListenFn(func(network, address string) (net.Listener, error) {
			ln, err := net.Listen(network, address)
			return &listener{ln, cancel}, err
		}))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(cluster.Close)
	tb.Cleanup(cancel)
	before := make(chan struct{}) // closed after the previous request
	close(before)
	sequences := map[producer]int32{}
	cluster.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		request := r.(*kmsg.ProduceRequest)
		response := request.ResponseKind().(*kmsg.ProduceResponse)
		previous, current := before, make(chan struct{})
		before = current
		cluster.SleepControl(func() {
			<-previous
			defer close(current)
			for _, topic := range request.Topics {
				rt := kmsg.NewProduceResponseTopic()
				rt.Topic, rt.TopicID = topic.Topic, topic.TopicID
				for _, p := range topic.Partitions {
					rp := kmsg.NewProduceResponseTopicPartition()
					rp.Partition = p.Partition
					rp.ErrorCode = appendRecords(ctx, p.Records, sequences, next)
					rt.Partitions = append(rt.Partitions, rp)
				}
				response.Topics = append(response.Topics, rt)
			}
		})
		return response, nil, true
	})
	return cluster.ListenAddrs()[0]
}

// listener calls closed when a client closes one of its connections, which a client does when it is
// stopped. The calls of next that are open then end.
type listener struct {
	net.Listener
	closed func()
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &connection{c, l.closed}, err
}

type connection struct {
	net.Conn
	closed func()
}

func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.closed()
	}
	return n, err
}

// producer identifies an idempotent producer.
type producer struct {
	id    int64
	epoch int16
}

// appendRecords checks the sequence number of a record batch, as brokers do: after a record batch
// was refused, those that were sent behind it are refused, too.
func appendRecords(ctx context.Context, records []byte, sequences map[producer]int32, next pipeline.Consumer) int16 {
	var header kmsg.RecordBatch
	if err := header.ReadFrom(records); err != nil {
		return kerr.CorruptMessage.Code
	}
	p := producer{header.ProducerID, header.ProducerEpoch}
	if header.FirstSequence != sequences[p] {
		return kerr.OutOfOrderSequenceNumber.Code
	}
	code := forward(ctx, records, next)
	if code == 0 {
		sequences[p] += header.NumRecords
	}
	return code
}

// forward passes the records of a record batch to next and returns an error code for the outcome.
func forward(ctx context.Context, recordBatch []byte, next pipeline.Consumer) int16 {
	partition := kmsg.NewFetchResponseTopicPartition()
	partition.RecordBatches = recordBatch
	fetched, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{}, &partition, kgo.DefaultDecompressor(), nil)
	if fetched.Err != nil {
		return kerr.CorruptMessage.Code
	}
	var batches []*otlpdata.Batch
	for _, r := range fetched.Records {
		b, err := otlpdata.FromOTLP(r.Value, otlpdata.Meta{}, otlpdata.Limits{})
		if err != nil {
			return kerr.InvalidRecord.Code
		}
		batches = append(batches, b)
	}
	joined, err := otlpdata.Concat(batches...)
	if err == nil {
		err = next.Consume(ctx, joined)
	}
	switch {
	case err == nil:
	case pipeline.IsPermanent(err):
		return kerr.InvalidRecord.Code
	default:
		return kerr.TopicAuthorizationFailed.Code // an error that the client does not repeat by itself
	}
	return 0
}
