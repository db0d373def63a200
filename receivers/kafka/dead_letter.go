package kafka

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tracing-backend/tracing/internal/kafka"
)

// letter is a record that cannot be processed.
type letter struct {
	record *kgo.Record // without a value if it cannot be read
	reason string
	err    error
}

// letterWriter writes dead letters durably.
type letterWriter interface {
	// write returns where the letter is. It may rewrite the same letter after an error or a
	// restart.
	write(ctx context.Context, l letter) (where string, err error)
}

func newLetterWriter(r *receiver) letterWriter {
	if r.config.DeadLetter.Topic == "" {
		return newLetterFiles(r.set, int64(r.config.DeadLetter.MaxSize))
	}
	return &letterTopic{r}
}

// letterError is the error of a dead letter that cannot be written.
type letterError struct {
	offset int64
	err    error
}

func (e *letterError) Error() string {
	return fmt.Sprintf("cannot write the record at offset %d as a dead letter, and its partition waits: %v", e.offset, e.err)
}

func (e *letterError) Unwrap() error { return e.err }

// Headers of a dead letter in addition to the headers of the record. Their values are text.
const (
	headerTopic     = "tracing-dead-letter-topic"
	headerPartition = "tracing-dead-letter-partition"
	headerOffset    = "tracing-dead-letter-offset"
	headerReason    = "tracing-dead-letter-reason"
	headerError     = "tracing-dead-letter-error"
)

// maxErrorText is the maximum length of an error in a dead letter, in bytes.
const maxErrorText = 4 << 10

// headers returns the additional headers of a letter.
func (l *letter) headers() []kgo.RecordHeader {
	text := strings.ToValidUTF8(l.err.Error(), "\uFFFD")
	return []kgo.RecordHeader{
		{Key: headerTopic, Value: []byte(l.record.Topic)},
		{Key: headerPartition, Value: strconv.AppendInt(nil, int64(l.record.Partition), 10)},
		{Key: headerOffset, Value: strconv.AppendInt(nil, l.record.Offset, 10)},
		{Key: headerReason, Value: []byte(l.reason)},
		{Key: headerError, Value: []byte(text[:min(len(text), maxErrorText)])},
	}
}

// letterTopic writes dead letters to a topic of the same cluster.
type letterTopic struct{ r *receiver }

func (t *letterTopic) write(ctx context.Context, l letter) (string, error) {
	c := &t.r.config.DeadLetter
	ctx, cancel := context.WithTimeout(ctx, c.Timeout.Std())
	defer cancel()
	record := &kgo.Record{Topic: c.Topic, Key: l.record.Key, Value: l.record.Value,
		Headers: append(l.record.Headers[:len(l.record.Headers):len(l.record.Headers)], l.headers()...)}
	if err := t.r.client.ProduceSync(ctx, record).FirstErr(); err != nil {
		if kafka.Reason(err) == kafka.ReasonTooLarge {
			return "", fmt.Errorf("dead_letter::topic %s refuses a record of this size; increase its max.message.bytes: %w", c.Topic, err)
		}
		return "", t.r.config.Explain(c.Topic, err)
	}
	return fmt.Sprintf("topic %s, partition %d, offset %d", record.Topic, record.Partition, record.Offset), nil
}
