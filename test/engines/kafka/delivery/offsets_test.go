package delivery_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/engines/kafka/broker"
	"github.com/tracing-backend/tracing/test/harness"
)

// sampleInterval is the time between two looks at the committed offsets.
const sampleInterval = 100 * time.Millisecond

// offsets watches the offsets that a group commits, and compares them with what is stored.
type offsets struct {
	i      *installation
	client *kgo.Client
	admin  *kadm.Client
	file   *os.File // lines of time, partition, offset

	mu        sync.Mutex
	committed map[int32]int64 // largest offsets that were seen
	samples   int
	backward  int // samples below an earlier one: a new coordinator first answers with what it knows to be replicated

	checked map[int32]int64 // up to here, records were compared with the store
	records int             // compared
	spans   int             // compared
}

// watchOffsets watches the committed offsets of an installation until the test ends.
func watchOffsets(i *installation) *offsets {
	i.t.Helper()
	client, err := broker.Client(i.Brokers()...)
	if err != nil {
		i.t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(i.t.ArtifactDir(), "offsets.log"))
	if err != nil {
		i.t.Fatal(err)
	}
	o := &offsets{i: i, client: client, admin: kadm.NewClient(client), file: file, committed: map[int32]int64{}, checked: map[int32]int64{}}
	ctx, stop := context.WithCancel(i.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(sampleInterval)
		defer tick.Stop()
		for ctx.Err() == nil {
			o.sample(ctx) //nolint:errcheck // brokers are killed
			<-tick.C
		}
	}()
	i.t.Cleanup(func() {
		stop()
		<-done
		client.Close()
		if err := file.Close(); err != nil {
			i.t.Error(err)
		}
	})
	return o
}

// sample asks the brokers for the committed offsets and logs them.
func (o *offsets) sample(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	answer, err := o.admin.FetchOffsets(ctx, o.i.group)
	if err == nil {
		err = answer.Error()
	}
	if err != nil {
		return err
	}
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range answer.Offsets()[o.i.topic] {
		before := o.committed[p.Partition]
		if p.At < before {
			o.backward++
		}
		o.committed[p.Partition] = max(before, p.At)
		o.samples++
		if _, err := fmt.Fprintln(o.file, now.Format(time.RFC3339Nano), p.Partition, p.At); err != nil {
			o.i.t.Error(err)
		}
	}
	return nil
}

// awaitSample is like sample, but repeats it until the brokers have answered.
func (o *offsets) awaitSample() {
	o.i.t.Helper()
	harness.Poll(o.i.t, "committed offsets are read", func() bool { return o.sample(o.i.t.Context()) == nil })
}

// check reads the records below the largest committed offsets that it has not read before, and
// checks that the store has each of their spans exactly once.
func (o *offsets) check() {
	o.i.t.Helper()
	o.mu.Lock()
	to := map[int32]int64{}
	for p, at := range o.committed {
		if at > o.checked[p] {
			to[p] = at
		}
	}
	o.mu.Unlock()
	traces := traceCollector{}
	for _, r := range o.read(to) {
		if err := otlpdata.Walk(r.Value, traces); err != nil {
			o.i.t.Fatalf("partition %d, offset %d: %v", r.Partition, r.Offset, err)
		}
		o.records++
	}
	url := o.i.store.QueryURL()
	for trace, spans := range traces {
		stored := harness.SpanCounts(o.i.t, url, trace)
		for id, n := range spans {
			o.spans += n
			if stored[id] != 1 {
				o.i.t.Errorf("trace %s: span %s is below the committed offset and was found %d times", trace, id, stored[id])
			}
		}
	}
	if o.i.t.Failed() {
		o.i.t.FailNow()
	}
	for p, at := range to {
		o.checked[p] = at
	}
}

// read returns the records after the checked ones, up to the given offsets.
func (o *offsets) read(to map[int32]int64) (records []*kgo.Record) {
	o.i.t.Helper()
	from := map[int32]kgo.Offset{}
	for p := range to {
		from[p] = kgo.NewOffset().At(o.checked[p])
	}
	if len(from) == 0 {
		return nil
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(o.i.Brokers()...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{o.i.topic: from}))
	if err != nil {
		o.i.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(o.i.t.Context(), time.Minute) // only a failing test reaches it
	defer cancel()
	for left := len(to); left > 0; {
		fetches := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			o.i.t.Fatalf("reading the topic: %v; %d partitions are left", err, left)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset < to[r.Partition] {
				records = append(records, r)
			}
			if r.Offset == to[r.Partition]-1 {
				left--
			}
		})
	}
	return records
}

// awaitAll waits until the group has committed everything in the topic.
func (o *offsets) awaitAll() {
	o.i.t.Helper()
	harness.Poll(o.i.t, "everything in the topic is committed", func() bool {
		ends, err := o.admin.ListEndOffsets(o.i.t.Context(), o.i.topic)
		if err != nil || ends.Error() != nil || o.sample(o.i.t.Context()) != nil {
			return false // a broker that was killed may still be missing
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		all := true
		ends.Each(func(e kadm.ListedOffset) { all = all && o.committed[e.Partition] == e.Offset })
		return all
	})
}

// traceCollector counts span ids by trace.
type traceCollector map[string]map[string]int

func (traceCollector) Resource(*otlpdata.Resource) error { return nil }

func (traceCollector) Scope(*otlpdata.Scope) error { return nil }

func (c traceCollector) Span(s *otlpdata.Span) error {
	trace := s.TraceID.String()
	if c[trace] == nil {
		c[trace] = map[string]int{}
	}
	c[trace][s.SpanID.String()]++
	return nil
}
