// Package failover provides the `failover` connector of the OpenTelemetry Collector, which passes
// spans to the first level of pipelines that accepts them.
package failover

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

type config struct {
	PriorityLevels [][]pipeline.PipelineID `yaml:"priority_levels" doc:"Pipelines by level, the preferred level first. A level with several pipelines passes spans to all of them, and fails if one of them does."`
	RetryInterval  pipeline.Duration       `yaml:"retry_interval" doc:"Interval at which levels above the current one are retried."`
}

// Validate checks that there are levels.
func (c *config) Validate() error {
	var errs []error
	if len(c.PriorityLevels) == 0 {
		errs = append(errs, pipeline.BadKey("priority_levels", "needs at least one level"))
	}
	for i, level := range c.PriorityLevels {
		if len(level) == 0 {
			errs = append(errs, pipeline.BadKey(fmt.Sprintf("priority_levels::%d", i), "needs at least one pipeline"))
		}
	}
	if c.RetryInterval <= 0 {
		errs = append(errs, pipeline.BadKey("retry_interval", "must be above 0"))
	}
	return errors.Join(errs...)
}

// Factory returns the factory of connectors of type failover.
func Factory() pipeline.Factory {
	return pipeline.Connector("failover", func() config { return config{RetryInterval: pipeline.Duration(10 * time.Minute)} },
		func(set pipeline.Settings, c config, next pipeline.Branches) (*connector, error) {
			out := &connector{set: set, interval: c.RetryInterval.Std()}
			for _, ids := range c.PriorityLevels {
				names := make([]string, len(ids))
				for i, id := range ids {
					names[i] = id.String()
				}
				out.levels = append(out.levels, level{strings.Join(names, ", "), next.Only(ids...)})
			}
			return out, nil
		}).Doc("Passes spans to the first level of pipelines that accepts them.")
}

type level struct {
	name string
	pipeline.Consumer
}

type connector struct {
	set      pipeline.Settings
	levels   []level
	interval time.Duration

	mu      sync.Mutex
	current int       // index of the level to begin with, unless the top is retried
	tried   time.Time // when a level above the current one was last tried
}

// Consume passes b to the current level and, if that refuses it, to the next ones. From time to
// time, it begins at the top. If all levels refuse b, it returns the error of the last one.
func (c *connector) Consume(ctx context.Context, b *otlpdata.Batch) (err error) {
	for i := c.first(); i < len(c.levels); i++ {
		err = c.try(ctx, i, b)
		var partial *pipeline.Partial
		if err == nil || errors.As(err, &partial) {
			c.accepted(i)
			return err
		}
		if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return err // the client has left, which says nothing about the level
		}
		c.failed(i, err)
	}
	return err
}

// try passes b to a level. The level gets an equal share of the time until the deadline, so that
// there is time left for the others.
func (c *connector) try(ctx context.Context, i int, b *otlpdata.Batch) error {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(len(c.levels)-i))
		defer cancel()
	}
	return c.levels[i].Consume(ctx, b)
}

// first returns the level to begin with.
func (c *connector) first() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.set.Env.Now()
	if c.current == 0 || now.Sub(c.tried) < c.interval {
		return c.current
	}
	c.tried = now
	return 0
}

// accepted records that a level accepted spans.
func (c *connector) accepted(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i >= c.current {
		return
	}
	c.current = i
	c.set.Logger.Info("level accepts spans again", zap.String("pipelines", c.levels[i].name))
	if i == 0 {
		c.set.Report(nil)
	}
}

// failed records that a level refused spans. After the last level, the next batch begins at the
// top.
func (c *connector) failed(i int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i != c.current {
		return
	}
	c.current, c.tried = (i+1)%len(c.levels), c.set.Env.Now()
	c.set.Report(fmt.Errorf("%s refused spans, which go to %s: %w", c.levels[i].name, c.levels[c.current].name, err))
}
