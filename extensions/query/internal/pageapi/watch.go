package pageapi

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/page"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// watcher sends spans to one client as they are stored.
type watcher struct {
	out    *page.Lines
	config *TailConfig
	feed   *tracestore.Feed
	where  tracestore.Expr

	shown, examined int       // in this interval
	total, reported tailCount // since the beginning, and as last reported to the client
	lastSent        time.Time
	events          []byte // to be sent
}

// tailCount counts spans: those that were sent, those that matched but exceeded the rate limit, and
// those that were not examined.
type tailCount struct{ shown, leftOut, missed int }

// run returns when the client disconnects, when stop is closed, and after max_duration.
func (c *watcher) run(ctx context.Context, stop <-chan struct{}) error {
	over := time.NewTimer(c.config.MaxDuration.Std())
	defer over.Stop()
	tick := time.NewTicker(tailInterval)
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
			c.take()
			if err := c.feed.Err(); err != nil {
				return c.end(err.Error())
			}
		case <-tick.C:
			c.tick()
		}
	}
}

// tick begins an interval.
func (c *watcher) tick() {
	c.shown, c.examined = 0, 0
	if c.total != c.reported {
		c.status()
	} else if time.Since(c.lastSent) >= tailKeepAlive {
		c.events = append(c.events, ":\n\n"...)
	}
}

// flush sends the events.
func (c *watcher) flush() error {
	if len(c.events) == 0 {
		return nil
	}
	c.lastSent = time.Now()
	err := c.out.ExtendDeadlines(c.lastSent, tailWriteTimeout)
	if err == nil {
		err = c.out.Send(c.events)
	}
	c.events = c.events[:0]
	return err
}

var errTailBudget = errors.New("no more spans are examined in this interval")

// take adds events for the matching spans of a batch.
func (c *watcher) take() {
	b, missed := c.feed.Take()
	c.total.missed += missed
	if b == nil {
		return
	}
	seen := 0
	err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
		if c.examined >= c.config.MaxExamined {
			return errTailBudget
		}
		seen++
		c.examined++
		c.span(s)
		return nil
	})
	if err != nil {
		c.total.missed += b.Len() - seen
	}
}

// span adds an event for a span if it matches.
func (c *watcher) span(s tracestore.Span) {
	switch {
	case !tracestore.Match(c.where, s):
	case c.shown >= c.config.MaxRate:
		c.total.leftOut++
	default:
		c.shown++
		c.total.shown++
		c.events = append(appendTailSpan(append(c.events, "event: span\ndata: "...), s), "\n\n"...)
	}
}

// appendTailSpan appends a span as an object. Its length is bounded: long names are shortened.
func appendTailSpan(dst []byte, s tracestore.Span) []byte {
	ns, _ := s.Duration()
	dst = hex.AppendEncode(append(dst, `{"traceID":"`...), s.TraceID[:])
	dst = hex.AppendEncode(append(dst, `","spanID":"`...), s.SpanID[:])
	dst = append(dst, `","parentID":"`...)
	if !s.ParentID.IsZero() {
		dst = hex.AppendEncode(dst, s.ParentID[:])
	}
	dst = otlpdata.AppendJSONString(append(dst, `","service":`...), storequery.FacetText(s.Resource.Service))
	dst = otlpdata.AppendJSONString(append(dst, `,"name":`...), storequery.FacetText(s.Operation()))
	dst = append(append(dst, `,"kind":"`...), s.KindName()...)
	dst = strconv.AppendUint(append(dst, `","start":"`...), s.Start, 10)
	dst = strconv.AppendUint(append(dst, `","duration":`...), ns, 10)
	dst = strconv.AppendBool(append(dst, `,"error":`...), s.StatusCode == otlpdata.StatusError)
	return append(dst, '}')
}

// status adds an event with the counts.
func (c *watcher) status() {
	c.reported = c.total
	c.events = fmt.Appendf(c.events, "event: status\ndata: {\"shown\":%d,\"leftOut\":%d,\"missed\":%d}\n\n",
		c.total.shown, c.total.leftOut, c.total.missed)
}

// end sends the counts and the reason why the answer ends.
func (c *watcher) end(reason string) error {
	c.status()
	c.events = otlpdata.AppendJSONString(append(c.events, "event: end\ndata: {\"reason\":"...), reason)
	c.events = append(c.events, "}\n\n"...)
	return c.flush()
}
