package query

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// watcher is a client that is shown spans as they are stored.
type watcher struct {
	*lines
	config *TailConfig
	feed   *tracestore.Feed
	where  tracestore.Expr

	shown, examined int       // in this second
	total, told     watched   // since the beginning, and what the client was told of
	spoke           time.Time // when it heard something last
	events          []byte    // to be sent
}

// watched counts spans. Those that matched and were not shown are left out, those that were not examined are missed.
type watched struct{ shown, leftOut, missed int }

// run ends with the client, with the server, and after max_duration.
func (c *watcher) run(ctx context.Context, stop <-chan struct{}) error {
	over := time.NewTimer(c.config.MaxDuration.Std())
	defer over.Stop()
	tick := time.NewTicker(tailTick)
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
			return c.end("the server stops")
		case <-over.C:
			return c.end(fmt.Sprintf("max_duration (%s) is over", c.config.MaxDuration))
		case <-c.feed.Ready():
			c.take()
		case <-tick.C:
			c.tick()
		}
	}
}

// tick begins a second.
func (c *watcher) tick() {
	c.shown, c.examined = 0, 0
	if c.total != c.told {
		c.status()
	} else if time.Since(c.spoke) >= tailPulse {
		c.events = append(c.events, ":\n\n"...)
	}
}

// flush sends what there is.
func (c *watcher) flush() error {
	if len(c.events) == 0 {
		return nil
	}
	c.spoke = time.Now()
	err := c.outlive(c.spoke, tailWrite)
	if err == nil {
		err = c.send(c.events)
	}
	c.events = c.events[:0]
	return err
}

var errEnough = errors.New("no more may be examined in this second")

// take shows what is to be shown of a batch.
func (c *watcher) take() {
	b, missed := c.feed.Take()
	c.total.missed += missed
	if b == nil {
		return
	}
	seen := 0
	err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
		if c.examined >= c.config.MaxExamined {
			return errEnough
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

func (c *watcher) span(s tracestore.Span) {
	switch {
	case !tracestore.Match(c.where, s):
	case c.shown >= c.config.MaxRate:
		c.total.leftOut++
	default:
		c.shown++
		c.total.shown++
		c.events = append(appendWatched(append(c.events, "event: span\ndata: "...), s), "\n\n"...)
	}
}

// appendWatched appends what a list of spans shows of one, as an object. Its length is bounded: long names are cut.
func appendWatched(dst []byte, s tracestore.Span) []byte {
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

// status tells of what was not shown.
func (c *watcher) status() {
	c.told = c.total
	c.events = fmt.Appendf(c.events, "event: status\ndata: {\"shown\":%d,\"leftOut\":%d,\"missed\":%d}\n\n",
		c.total.shown, c.total.leftOut, c.total.missed)
}

// end says goodbye.
func (c *watcher) end(reason string) error {
	c.status()
	c.events = otlpdata.AppendJSONString(append(c.events, "event: end\ndata: {\"reason\":"...), reason)
	c.events = append(c.events, "}\n\n"...)
	return c.flush()
}
