// Package kafka receives spans from a topic of a Kafka cluster, as a member of a consumer group.
//
// Each partition that the group assigns to the member has a worker (worker.go). It takes records in
// order, joins the records of one tenant, decodes them and passes them to the pipeline. When the
// pipeline has accepted them, their offset may be committed (progress.go says which and why);
// commit.go commits periodically and before a partition is revoked. group.go polls records and
// follows assignments. A record that cannot be processed because of its content is written as a
// dead letter (dead_letter.go); every other failure is retried until it succeeds (stalls.go).
package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tracing-backend/tracing/internal/kafka"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Factory returns the factory of receivers of type kafka.
func Factory() pipeline.Factory {
	return pipeline.Receiver("kafka", defaults, newReceiver).
		Doc("Receives spans from a Kafka topic, and commits offsets only of spans that the pipeline has accepted.")
}

type receiver struct {
	set        pipeline.Settings
	config     config
	next       pipeline.Consumer
	connection *kafka.Connection
	decoder    *kafka.Decoder
	slots      chan struct{} // one for each batch that is decoded or in the pipeline
	memory     *memory
	counts     counts
	reports    reports
	stalls     *partitionErrors // partitions whose records the pipeline refuses
	unfetched  *partitionErrors // partitions whose fetches fail
	commits    committer
	client     *kgo.Client // from Start on
	admin      *kadm.Client
	letters    letterWriter // from Start on

	joined      chan struct{} // has a value when partitions were assigned
	stopPolling context.CancelFunc
	kill        context.CancelFunc // ends the client
	loops       sync.WaitGroup     // polling, committing and watching

	mu         sync.Mutex
	partitions map[int32]*partition // assigned partitions
	processed  map[int32]int64      // offsets up to which this receiver has processed records, also of former partitions
}

var (
	_ pipeline.MemoryUser = (*receiver)(nil)
	_ pipeline.MaxWaiter  = (*receiver)(nil)
)

func newReceiver(set pipeline.Settings, c config, next pipeline.Consumer) (*receiver, error) {
	connection, err := kafka.NewConnection(set, c.ClientConfig)
	if err != nil {
		return nil, err
	}
	decoder, err := kafka.NewDecoder(c.Encoding, c.Limits())
	if err != nil {
		return nil, err
	}
	r := &receiver{
		set: set, config: c, next: next, connection: connection, decoder: decoder,
		slots:      make(chan struct{}, c.MaxConcurrent),
		memory:     newMemory(set.Budget, int64(c.MaxQueuedSize), int64(c.MaxFetchSize)),
		counts:     newCounts(),
		reports:    newReports(set),
		joined:     make(chan struct{}, 1),
		partitions: map[int32]*partition{},
		processed:  map[int32]int64{},
	}
	r.stalls = newPartitionErrors(r.reports.stalled, "wait until their records can be processed")
	r.unfetched = newPartitionErrors(r.reports.fetch, "cannot be fetched")
	r.commits = committer{receiver: r}
	return r, r.registerMetrics()
}

// MaxMemory returns the maximum memory of records in the client library: fetched records that were
// not polled yet and, if the budget is exhausted, the records of the last poll. All other memory is
// charged to the budget.
func (r *receiver) MaxMemory() int64 {
	// Fetch limits apply to compressed records. Spans compress at best to about a sixth, so this is
	// an estimate; a record batch that would exceed max_decompressed_batch_size is not
	// decompressed.
	const compression, polled = 6, 2
	return polled * int64(r.config.MaxConcurrentFetches) * int64(r.config.MaxFetchSize) * compression
}

// Start starts joining the group and returns. Problems with brokers are reported.
func (r *receiver) Start(ctx context.Context) error {
	if err := r.connection.Load(ctx); err != nil {
		return err
	}
	whole, kill := context.WithCancel(context.Background())
	r.mu.Lock() // callbacks of the client wait for it before they use the fields
	defer r.mu.Unlock()
	client, err := kgo.NewClient(append(r.connection.Options(), r.options(whole)...)...)
	if err != nil {
		kill()
		return errors.Join(fmt.Errorf("creating the client: %w", err), r.connection.Close(ctx))
	}
	polling, stopPolling := context.WithCancel(whole)
	r.client, r.admin, r.kill, r.stopPolling = client, kadm.NewClient(client), kill, stopPolling
	r.letters = newLetterWriter(r)
	r.loops.Go(func() { r.poll(polling) })
	r.loops.Go(func() { r.commits.loop(polling) })
	r.loops.Go(func() { r.watch(polling) })
	return nil
}

// maxStop is the maximum time to wait for batches when the receiver stops. The context of Stop is
// usually shorter.
const maxStop = time.Hour

// Stop stops polling, waits for the batches in the pipeline, commits, and leaves the group; a
// member with a group_instance_id does not leave. If ctx has ended, it cancels the batches, and
// still commits and leaves.
func (r *receiver) Stop(ctx context.Context) error {
	r.stopPolling()
	r.loops.Wait()
	unfinished := r.giveUp(ctx, maxStop, r.assigned(), true)
	leaving, cancel := withGrace(ctx, r.config.Autocommit.Timeout.Std())
	defer cancel()
	err := r.client.LeaveGroupContext(leaving)
	r.kill()
	r.client.Close()
	if unfinished > 0 {
		err = errors.Join(err, fmt.Errorf("%d partitions had a batch in the pipeline; its records will be consumed again", unfinished))
	}
	r.reports.log.Close()
	return errors.Join(err, r.connection.Close(ctx))
}

// grace is how long the last commit and leaving the group may take after the context of Stop has
// ended. Without them, the next member waits for session_timeout and reprocesses more records.
const grace = 2 * time.Second

// withGrace returns a context for such a request. It ends after limit, or after grace if ctx ends
// earlier.
func withGrace(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}

// MaxWait returns revoke_timeout, the maximum time of one attempt to process a batch: a revoked
// partition waits this long for its current batch.
func (r *receiver) MaxWait() time.Duration { return r.config.RevokeTimeout.Std() }

// transport is the transport of batches: a label of metrics.
const transport = "kafka"

// meta returns the origin of a batch of records.
func (r *receiver) meta(tenant string, metadata otlpdata.Metadata) otlpdata.Meta {
	return otlpdata.Meta{Tenant: tenant, Transport: transport, Received: r.set.Env.Now(), Metadata: metadata}
}
