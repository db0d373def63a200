package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/internal/kafka"
	"github.com/tracing-backend/tracing/pipeline"
)

const (
	// checkTimeout is the maximum duration of one check.
	checkTimeout = 10 * time.Second
	// checkPause is the minimum time between two checks.
	checkPause = time.Second
	// checkRetry is the time after a failed check until the next one.
	checkRetry = 2 * time.Second
	// createPoll is the interval of checks whether a new topic exists.
	createPoll = 100 * time.Millisecond
)

// topic watches the topic: it checks the topic at start, regularly, and when records fail. It
// creates the topic if configured.
type topic struct {
	set        pipeline.Settings
	cfg        *config
	report     func(error)
	partitions prometheus.Gauge
	client     *kgo.Client
	admin      *kadm.Client

	count    atomic.Int64 // partitions; 0 if the topic is unknown
	maxBytes atomic.Int64 // max.message.bytes; 0 if unknown
	limit    atomic.Int64 // maximum size of a record batch
	requests chan struct{}
	cancel   context.CancelFunc
	ended    chan struct{} // closed when the goroutine ends

	mu      sync.Mutex
	err     error         // of the last check
	checked chan struct{} // closed and replaced after a check

	// Only in the goroutine:
	id     kadm.TopicID // zero: not known
	warned string
}

func newTopic(set pipeline.Settings, c *config, partitions prometheus.Gauge, report func(error)) *topic {
	t := &topic{set: set, cfg: c, report: report, partitions: partitions, requests: make(chan struct{}, 1), checked: make(chan struct{}),
		ended: make(chan struct{}), err: errNotChecked}
	t.limit.Store(t.batchLimit(0))
	return t
}

var errNotChecked = errors.New("no broker has responded yet")

func (t *topic) start(cl *kgo.Client) {
	t.client, t.admin = cl, kadm.NewClient(cl)
	var ctx context.Context
	ctx, t.cancel = context.WithCancel(context.Background())
	go t.watch(ctx)
}

func (t *topic) stop() {
	t.cancel()
	<-t.ended
}

// await returns the number of partitions. If the topic is unknown, it waits for the next check.
func (t *topic) await(ctx context.Context) (int, error) {
	t.mu.Lock()
	checked := t.checked
	t.mu.Unlock()
	if n := t.count.Load(); n > 0 {
		return int(n), nil
	}
	t.suspect()
	select {
	case <-checked:
	case <-t.ended:
		return 0, pipeline.ErrStopping
	case <-ctx.Done():
	}
	if n := t.count.Load(); n > 0 {
		return int(n), nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return 0, t.cfg.Explain(t.cfg.Topic, t.err)
}

// batchLimit returns the maximum size of a record batch if max.message.bytes is n. 0 means unknown.
func (t *topic) batchLimit(n int64) int64 {
	limit := int64(t.cfg.Producer.MaxMessageBytes)
	if n > 0 {
		limit = min(limit, n)
	}
	return max(limit, minMessageBytes)
}

// maxBatch returns the maximum size of a record batch for which records are made.
func (t *topic) maxBatch() int { return int(t.limit.Load()) }

// clientLimit returns the maximum size of a record batch, which the client library keeps for each
// partition.
func (t *topic) clientLimit(string) int32 { return int32(t.batchLimit(t.maxBytes.Load())) }

// resized reports whether the maximum size of a record batch is, or may be, no longer limit.
func (t *topic) resized(ctx context.Context, limit int) bool {
	if t.maxBytes.Load() == 0 {
		return false // brokers do not tell it
	}
	limits, err := kafka.ReadTopicLimits(ctx, t.admin, t.cfg.Topic)
	return err != nil || t.batchLimit(int64(limits.MaxMessageBytes)) != int64(limit)
}

// suspect requests a check, because a record has failed.
func (t *topic) suspect() {
	select {
	case t.requests <- struct{}{}:
	default: // requested
	}
}

// counted requests a check if the client has a different number of partitions.
func (t *topic) counted(n int) {
	if int64(n) != t.count.Load() {
		t.suspect()
	}
}

// watch checks the topic until ctx ends.
func (t *topic) watch(ctx context.Context) {
	defer close(t.ended)
	for {
		err := t.check(ctx)
		if ctx.Err() != nil {
			return
		}
		t.finish(err)
		next := t.cfg.Metadata.RefreshInterval.Std()
		if err != nil {
			next = min(next, checkRetry)
		}
		if !wait(ctx, checkPause, nil) || !wait(ctx, next, t.requests) {
			return
		}
	}
}

// wait waits for d or until requests has a value. It returns false if ctx ends.
func wait(ctx context.Context, d time.Duration, requests <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-requests:
	case <-ctx.Done():
		return false
	}
	return true
}

// finish publishes the result of a check.
func (t *topic) finish(err error) {
	t.partitions.Set(float64(t.count.Load()))
	t.mu.Lock()
	before := t.err
	t.err = err
	close(t.checked)
	t.checked = make(chan struct{})
	t.mu.Unlock()
	if err != nil {
		t.report(t.cfg.Explain(t.cfg.Topic, err))
	} else if before != nil {
		t.report(nil)
	}
}

// check reads the topic, and creates it if necessary. An error is a reason why writing fails.
func (t *topic) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	details, err := t.read(ctx)
	if create, on := t.cfg.CreateTopic.Get(); on && errors.Is(err, kerr.UnknownTopicOrPartition) {
		details, err = t.create(ctx, &create)
	}
	if err != nil {
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			t.count.Store(0)
		}
		return err
	}
	t.follow(details.ID)
	limits := t.readLimits(ctx)
	t.resize()
	t.count.Store(int64(len(details.Partitions)))
	t.warn(details, limits)
	for _, p := range details.Partitions.Sorted() {
		if p.Err != nil {
			return fmt.Errorf("partition %d: %w", p.Partition, p.Err)
		}
		if len(p.ISR) < limits.MinInSync {
			return fmt.Errorf("partition %d has %d in-sync replicas, min.insync.replicas is %d; check the brokers: %w", p.Partition, len(p.ISR),
				limits.MinInSync, kerr.NotEnoughReplicas)
		}
	}
	return nil
}

// follow makes the client forget the topic if it was deleted and recreated with another id.
// Otherwise the client would refuse all records.
func (t *topic) follow(id kadm.TopicID) {
	if t.id != (kadm.TopicID{}) && id != t.id {
		t.client.PurgeTopicsFromProducing(t.cfg.Topic)
	}
	t.id = id
}

// resize makes the client forget the partitions if max.message.bytes has changed, because the
// client caches the limit with them. Larger records are made only afterwards, because the client
// would refuse them.
func (t *topic) resize() {
	if limit := t.batchLimit(t.maxBytes.Load()); limit != t.limit.Load() {
		t.client.PurgeTopicsFromProducing(t.cfg.Topic)
		t.limit.Store(limit)
	}
}

// read returns the partitions of the topic.
func (t *topic) read(ctx context.Context) (kadm.TopicDetail, error) {
	topics, err := t.admin.ListTopics(ctx, t.cfg.Topic)
	if err != nil {
		return kadm.TopicDetail{}, err
	}
	details := topics[t.cfg.Topic]
	if details.Err == nil && len(details.Partitions) == 0 {
		return details, kerr.UnknownTopicOrPartition
	}
	return details, details.Err
}

// create creates the topic and waits until brokers know it.
func (t *topic) create(ctx context.Context, c *createTopicConfig) (kadm.TopicDetail, error) {
	settings := map[string]*string{
		"min.insync.replicas": kadm.StringPtr(strconv.Itoa(c.minInSync())),
		"retention.ms":        kadm.StringPtr(strconv.FormatInt(c.Retention.Std().Milliseconds(), 10)),
	}
	if c.MaxBytes > 0 {
		settings["retention.bytes"] = kadm.StringPtr(strconv.FormatInt(int64(c.MaxBytes), 10))
	}
	if n := int64(t.cfg.Producer.MaxMessageBytes); n > defaultMaxMessage {
		settings["max.message.bytes"] = kadm.StringPtr(strconv.FormatInt(n, 10))
	}
	_, err := t.admin.CreateTopic(ctx, int32(c.Partitions), int16(c.ReplicationFactor), settings, t.cfg.Topic)
	switch {
	case err == nil:
		t.set.Logger.Info("created topic", zap.String("topic", t.cfg.Topic), zap.Int("partitions", c.Partitions),
			zap.Int("replication-factor", c.ReplicationFactor), zap.Int("min-insync-replicas", c.minInSync()))
	case !errors.Is(err, kerr.TopicAlreadyExists):
		return kadm.TopicDetail{}, fmt.Errorf("cannot create the topic; check create_topic and the number of brokers: %w", err)
	}
	for {
		details, err := t.read(ctx)
		if !errors.Is(err, kerr.UnknownTopicOrPartition) || !wait(ctx, createPoll, nil) {
			return details, err
		}
	}
}

// readLimits reads the limits of the topic and records the size of record batches. Brokers may deny
// access: then min.insync.replicas is unknown and the size stays unchanged.
func (t *topic) readLimits(ctx context.Context) kafka.TopicLimits {
	limits, err := kafka.ReadTopicLimits(ctx, t.admin, t.cfg.Topic)
	if err != nil && ctx.Err() == nil {
		t.set.Logger.Debug("cannot read settings of topic", zap.String("topic", t.cfg.Topic), zap.Error(err))
	}
	if limits.MaxMessageBytes > 0 {
		t.maxBytes.Store(int64(limits.MaxMessageBytes))
	}
	return limits
}

// warn logs recommended changes to the topic, once for each.
func (t *topic) warn(details kadm.TopicDetail, limits kafka.TopicLimits) {
	var weak []string
	if advice := limits.Advise(details.Partitions.NumReplicas()); advice != "" {
		weak = append(weak, advice)
	}
	if create, on := t.cfg.CreateTopic.Get(); on && len(details.Partitions) != create.Partitions {
		weak = append(weak, fmt.Sprintf("change create_topic::partitions (%d) or the number of partitions (%d)", create.Partitions,
			len(details.Partitions)))
	}
	if n := t.maxBytes.Load(); n > 0 && n < int64(t.cfg.Producer.MaxMessageBytes) {
		weak = append(weak, fmt.Sprintf("set max.message.bytes of the topic (%d) to at least producer::max_message_bytes (%d)", n,
			int64(t.cfg.Producer.MaxMessageBytes)))
	}
	text := strings.Join(weak, "; ")
	if text != "" && text != t.warned {
		t.set.Logger.Warn("topic should be changed: "+text, zap.String("topic", t.cfg.Topic))
	}
	t.warned = text
}
