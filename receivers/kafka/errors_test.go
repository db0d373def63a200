package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// A record that is refused does not affect the others: it becomes a dead letter, with the original
// record and with its place and reason.
func TestDeadLetterTopic(t *testing.T) {
	c := newCluster(t, 1)
	all := names("span", 50)
	c.poison("span-7", "span-31", "garbage", "nothing")
	c.write(0, all[:20]...)
	headers := []kgo.RecordHeader{{Key: "h", Value: []byte{0xff}}}
	c.writeRecord("garbage", &kgo.Record{Key: []byte("k"), Value: []byte("no spans"), Headers: headers})
	c.write(0, all[20:]...)
	next := &destination{c, func(_ context.Context, _ *otlpdata.Batch, names []string) error {
		if slices.Contains(names, "span-7") || slices.Contains(names, "span-31") {
			return pipeline.Permanent(errors.New("poison"))
		}
		return nil
	}}
	cfg := c.config()
	cfg.DeadLetter.Topic = dead
	m := c.start(cfg, next, 64<<20)
	c.awaitCommitted()
	c.expectOnce(slices.DeleteFunc(all, func(s string) bool { return s == "span-7" || s == "span-31" })...)
	letters := c.deadLetters(3)
	offsets := []string{}
	for _, l := range letters {
		place := []string{header(l, headerTopic), header(l, headerPartition), header(l, headerOffset), header(l, headerReason)}
		offsets = append(offsets, strings.Join(place, " "))
	}
	if want := []string{"spans 0 7 refused", "spans 0 20 undecodable", "spans 0 32 refused"}; !slices.Equal(offsets, want) {
		t.Errorf("dead letters: %q", offsets)
	}
	if l := letters[1]; string(l.Value) != "no spans" || string(l.Key) != "k" || header(l, "h") != "\xff" || header(l, headerError) == "" {
		t.Errorf("dead letter: %v", l)
	}
	if got := header(letters[0], headerError); got != "poison" {
		t.Errorf("error: %q", got)
	}
	got := m.Samples(t, prefix+"dead_letters_total", "reason")
	if got["refused"] != 2 || got["undecodable"] != 1 || len(got) != 4 {
		t.Errorf("metrics: %v", got)
	}
}

func header(r *kgo.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

// deadLetters reads n dead letters from the topic.
func (c *cluster) deadLetters(n int) (all []*kgo.Record) {
	c.t.Helper()
	reader, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(dead))
	if err != nil {
		c.t.Fatal(err)
	}
	defer reader.Close()
	ctx, cancel := context.WithTimeout(c.t.Context(), waitLimit)
	defer cancel()
	for len(all) < n {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			c.t.Fatal(err)
		}
		all = append(all, fetches.Records()...)
	}
	return all
}

// Without a topic, dead letters are files. If they are full, the partition waits.
func TestDeadLetterFiles(t *testing.T) {
	c := newCluster(t, 1)
	c.poison("first", "second")
	headers := []kgo.RecordHeader{{Key: "h", Value: []byte{0xff}}}
	c.writeRecord("first", &kgo.Record{Key: []byte("k"), Value: []byte("no\nspans"), Headers: headers})
	c.writeRecord("second", &kgo.Record{Value: []byte(strings.Repeat("\xff", 2000))})
	c.write(0, "good")
	cfg := c.config()
	cfg.DeadLetter.MaxSize = 1500
	m := c.start(cfg, c, 64<<20)
	m.awaitReport("cannot write the record at offset 1 as a dead letter, and its partition waits: folder ")
	m.awaitReport("dead_letter::max_size is 1500; remove files, increase the limit or set dead_letter::topic")
	await(t, "commit", func() bool { return c.committed(0) == 1 })
	dir := filepath.Join(m.Settings.Dir, letterFolder)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 || files[0].Name() != "spans-0-00000000000000000000.record" {
		t.Fatalf("files: %v, %v", files, err)
	}
	data, err := os.ReadFile(filepath.Join(dir, files[0].Name()))
	if err != nil {
		t.Fatal(err)
	}
	line, value, _ := strings.Cut(string(data), "\n")
	var d description
	if err := json.Unmarshal([]byte(line), &d); err != nil || value != "no\nspans" {
		t.Errorf("file %q: %v", data, err)
	}
	if d.Topic != topic || d.Partition != 0 || d.Offset != 0 || d.Reason != reasonUndecodable || string(d.Key) != "k" || d.Error == "" ||
		d.Timestamp == nil || len(d.Headers) != 1 || string(d.Headers[0].Value) != "\xff" {
		t.Errorf("description: %+v", d)
	}
	before := letter{&kgo.Record{Topic: topic, Key: []byte("k"), Value: []byte("no\nspans"), Headers: headers}, d.Reason, errors.New(d.Error)}
	full := newLetterFiles(m.Settings, int64(len(data)))
	if _, err := full.write(t.Context(), before); err != nil {
		t.Errorf("a letter that replaces itself: %v", err)
	}
	m.stop()
	cfg.DeadLetter.MaxSize = 1 << 20
	m = c.start(cfg, c, 64<<20)
	c.awaitCommitted()
	c.expectOnce("good")
	m.awaitReport("")
}

// If a dead letter cannot be written to its topic, the partition waits; nothing is lost.
func TestDeadLetterTopicFails(t *testing.T) {
	c := newCluster(t, 1)
	denied := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: dead, Err: kerr.TopicAuthorizationFailed, Count: -1})
	c.poison("garbage")
	c.writeRecord("garbage", &kgo.Record{Value: []byte("no spans")})
	c.write(0, "good")
	cfg := c.config()
	cfg.DeadLetter.Topic = dead
	m := c.start(cfg, c, 64<<20)
	m.awaitReport("cannot write the record at offset 0 as a dead letter, and its partition waits: ")
	if got := c.committed(0); got > 0 {
		t.Errorf("offset %d is committed", got)
	}
	// The second fault is there before the first one goes, so that no try between them succeeds.
	tooLarge := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: dead, Err: kerr.MessageTooLarge, Count: -1})
	denied.Remove()
	m.awaitReport("dead_letter::topic dead-spans refuses a record of this size; increase its max.message.bytes")
	tooLarge.Remove()
	c.awaitCommitted()
	c.expectOnce("good")
	if l := c.deadLetters(1); string(l[0].Value) != "no spans" {
		t.Errorf("dead letter: %v", l[0])
	}
}

// Errors of the next hop that are not about records are repeated even if they are permanent.
func TestErrorsOfNextHop(t *testing.T) {
	for _, code := range []codes.Code{codes.Unauthenticated, codes.PermissionDenied, codes.Unimplemented, codes.Unknown, codes.Internal,
		codes.NotFound, codes.FailedPrecondition} {
		t.Run(code.String(), func(t *testing.T) {
			c := newCluster(t, 1)
			c.write(0, "span")
			var well atomic.Bool
			m := c.start(c.config(), &destination{c, func(context.Context, *otlpdata.Batch, []string) error {
				if well.Load() {
					return nil
				}
				return status.Error(code, "cannot store now")
			}}, 64<<20)
			m.awaitReport("cannot store now")
			well.Store(true)
			c.awaitCommitted()
			c.expectOnce("span")
		})
	}
}

// Records with some rejected spans are not resent.
func TestPartial(t *testing.T) {
	c := newCluster(t, 1)
	c.write(0, "a", "b")
	var calls atomic.Int32
	m := c.start(c.config(), &destination{c, func(_ context.Context, b *otlpdata.Batch, _ []string) error {
		calls.Add(1)
		if err := c.Consume(t.Context(), b); err != nil {
			return err
		}
		return &pipeline.Partial{Rejected: 1, Err: errors.New("too old")}
	}}, 64<<20)
	c.awaitCommitted()
	c.expectOnce("a", "b")
	if m.sample("dead_letters_total") != 0 {
		t.Error("dead letters were written")
	}
}

// Delays double, are random, and are at least what the error asks for.
func TestDelays(t *testing.T) {
	d := delays{next: 100, max: 300, rand: func() uint64 { return 1<<40 - 1 }}
	low := delays{next: 100, max: 300, rand: func() uint64 { return 0 }}
	for _, want := range []int64{50, 100, 150, 150} {
		if got := low.after(errors.New("away")); int64(got) != want {
			t.Errorf("minimum delay: %d, want %d", got, want)
		}
		if got := d.after(errors.New("away")); int64(got) < want || int64(got) > 2*want {
			t.Errorf("delay: %d, want %d to %d", got, want, 2*want)
		}
	}
	if got := d.after(pipeline.Overloaded(errors.New("busy"), 1000)); got != 1000 {
		t.Errorf("requested delay: %d", got)
	}
}
