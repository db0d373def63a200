package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// watcher sends events to one client as spans are stored.
type watcher struct {
	out    *route.Lines
	config *Config
	feed   *tracestore.Feed
	events source

	step     int    // of this interval
	examined int    // spans in this interval
	missed   int    // spans since the beginning
	reported []byte // the last status
	lastSent time.Time
	buf      []byte // events to be sent
}

// source makes the events of one client. It appends them to dst.
type source interface {
	// span examines a span.
	span(dst []byte, s tracestore.Span) []byte
	// tick is called in each step of an interval. last reports whether the interval ends.
	tick(dst []byte, last bool) []byte
	// status appends the members of a status event. missed is a number of spans.
	status(dst []byte, missed int) []byte
}

// run returns when the client disconnects, when stop is closed, and after max_duration.
func (c *watcher) run(ctx context.Context, stop <-chan struct{}) error {
	over := time.NewTimer(c.config.MaxDuration.Std())
	defer over.Stop()
	tick := time.NewTicker(interval / steps)
	defer tick.Stop()
	c.status()
	for {
		if err := c.flush(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-stop:
			return c.end("server is shutting down")
		case <-over.C:
			return c.end(fmt.Sprintf("max_duration (%s) reached", c.config.MaxDuration))
		case <-c.feed.Ready():
			c.takeEvents()
			if err := c.feed.Err(); err != nil {
				return c.end(err.Error())
			}
		case <-tick.C:
			c.tick()
		}
	}
}

// tick ends a step.
func (c *watcher) tick() {
	c.step = (c.step + 1) % steps
	c.buf = c.events.tick(c.buf, c.step == 0)
	if c.step != 0 {
		return
	}
	c.examined = 0
	if status := c.events.status(nil, c.missed); string(status) != string(c.reported) {
		c.status()
	} else if len(c.buf) == 0 && time.Since(c.lastSent) >= keepAlive {
		c.buf = append(c.buf, ":\n\n"...)
	}
}

// flush sends the events.
func (c *watcher) flush() error {
	if len(c.buf) == 0 {
		return nil
	}
	c.lastSent = time.Now()
	err := c.out.ExtendDeadlines(c.lastSent, writeTimeout)
	if err == nil {
		err = c.out.Send(c.buf)
	}
	c.buf = c.buf[:0]
	return err
}

var errBudget = errors.New("no more spans are examined in this interval")

// takeEvents examines the spans of a batch.
func (c *watcher) takeEvents() {
	b, missed := c.feed.Take()
	c.missed += missed
	if b == nil {
		return
	}
	seen := 0
	err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
		if c.examined >= c.config.MaxExamined {
			return errBudget
		}
		seen++
		c.examined++
		c.buf = c.events.span(c.buf, s)
		return nil
	})
	if err != nil {
		c.missed += b.Len() - seen
	}
}

// status adds an event with the counts.
func (c *watcher) status() {
	c.reported = c.events.status(c.reported[:0], c.missed)
	c.buf = append(append(c.buf, "event: status\ndata: {"...), c.reported...)
	c.buf = append(c.buf, "}\n\n"...)
}

// end sends the counts and the reason why the response ends.
func (c *watcher) end(reason string) error {
	c.status()
	c.buf = otlpdata.AppendJSONString(append(c.buf, "event: end\ndata: {\"reason\":"...), reason)
	c.buf = append(c.buf, "}\n\n"...)
	return c.flush()
}
