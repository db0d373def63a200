// Package lines is a receiver of spans as lines of text over TCP, for shell scripts and cron jobs:
//
//	printf 'backup copy 5300\n' | nc -N localhost 4320
//
// A line is `service operation duration_ms`. It becomes a trace of one span that ended when the line
// arrived. Each line is answered with a line: `ok`, or what is wrong.
package lines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
)

type config struct {
	server.TCPConfig
	MaxDuration pipeline.Duration `yaml:"max_duration" doc:"Maximum span duration accepted."`
}

func defaults() config {
	c := config{TCPConfig: server.DefaultTCPConfig("localhost:4320"), MaxDuration: pipeline.Duration(24 * time.Hour)}
	c.MaxMessageSize = 4 << 10
	return c
}

// Validate checks max_duration. The keys of the listener are checked separately.
func (c *config) Validate() error {
	if c.MaxDuration <= 0 {
		return pipeline.BadKey("max_duration", "must be above 0; otherwise every line is refused")
	}
	return nil
}

// Factory returns the factory of receivers of type lines.
func Factory() pipeline.Factory {
	return pipeline.Receiver("lines", defaults, newReceiver).
		Doc("Accepts spans as lines of text over TCP: service, operation and duration in milliseconds.")
}

// receiver has Start, HandOver and Stop from the server that it embeds.
type receiver struct {
	*server.TCP
	set         pipeline.Settings
	next        pipeline.Consumer
	maxDuration time.Duration
}

var (
	_ pipeline.Stopper   = (*receiver)(nil)
	_ pipeline.Addressed = (*receiver)(nil)
)

func newReceiver(set pipeline.Settings, c config, next pipeline.Consumer) (*receiver, error) {
	r := &receiver{set: set, next: next, maxDuration: c.MaxDuration.Std()}
	var err error
	r.TCP, err = server.NewTCP(set, "tcp", c.TCPConfig, r.serve)
	return r, err
}

// Addr returns the address of the only listener.
func (r *receiver) Addr(string) string { return r.TCP.Addr() }

// serve answers the lines of one connection.
func (r *receiver) serve(ctx context.Context, conn *server.Conn) {
	for {
		text, err := conn.Next(server.SplitLines)
		if err == io.EOF {
			return
		}
		if err != nil { // too long, too slow, or over the memory budget
			io.WriteString(conn, answer(err)) //nolint:errcheck // the connection is closed anyway
			return
		}
		if _, err := io.WriteString(conn, answer(r.take(ctx, string(text)))); err != nil {
			return
		}
	}
}

// bytesPerSpan is the memory of the objects of a span, without the text of the line.
const bytesPerSpan = 2048

// take passes the span of a line on.
func (r *receiver) take(ctx context.Context, text string) error {
	l, err := parseLine(text)
	if err == nil && l.duration > r.maxDuration {
		err = fmt.Errorf("duration exceeds max_duration (%s)", r.maxDuration)
	}
	if err != nil {
		r.CountRefused(server.ReasonUndecodable)
		return pipeline.Permanent(err)
	}
	memory, err := r.set.Budget.Reserve(int64(len(text)) + bytesPerSpan)
	if err != nil {
		r.CountRefused(server.ReasonOverBudget)
		return err
	}
	defer memory.Release()

	now := r.set.Env.Now()
	meta := otlpdata.Meta{Format: "lines", Transport: "tcp", Received: now}
	err = r.next.Consume(ctx, otlpdata.FromTraces(l.traces(now, r.set.Env.Rand), meta))
	if partial := (*pipeline.Partial)(nil); errors.As(err, &partial) {
		return pipeline.Permanent(err) // the only span was rejected
	}
	return err
}

// answer returns the line for an outcome. Its first word tells clients whether, and when, to send
// the span again.
func answer(err error) string {
	if err == nil {
		return "ok\n"
	}
	text := strings.Join(strings.Fields(err.Error()), " ") // errors of next hops may have several lines
	if _, after := pipeline.HTTPStatus(err); after > 0 {
		return fmt.Sprintf("retry after %s: %s\n", after, text)
	}
	return fmt.Sprintf("refused: %s\n", text)
}
