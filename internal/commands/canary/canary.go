package canary

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// Outside holds the effects of a canary on the outside world, so that tests can replace them.
type Outside struct {
	Now       func() time.Time
	Transport http.RoundTripper
	Logger    *zap.Logger
	Metrics   prometheus.Registerer
}

// Canary writes traces and reads them back. It runs once.
type Canary struct {
	opt     Options
	api     api
	compare comparison
	now     func() time.Time
	log     *zap.Logger
	metrics *metrics
	memory  *memory

	mu      sync.Mutex
	summary Summary
}

// New checks the options and creates a canary.
func New(opt Options, out Outside) (*Canary, error) {
	if err := opt.validate(); err != nil {
		return nil, err
	}
	c := &Canary{
		opt: opt, now: out.Now, log: out.Logger,
		api:     api{otlp: base(opt.OTLP), query: base(opt.Query), header: opt.Header, transport: out.Transport},
		compare: comparison{ignored: opt.IgnoredTags},
		memory:  newMemory(opt.Ages, opt.Remember),
	}
	c.metrics = newMetrics(out.Metrics, c.memory, out.Now)
	return c, nil
}

// Run writes and reads until ctx ends, or until everything that the options require has been
// written and read once. The Summary is complete when it returns.
func (c *Canary) Run(ctx context.Context) Summary {
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.writeAll(ctx)
	}()
	c.readAll(ctx, written)
	<-written
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.summary
}

// writeAll writes a trace at every multiple of the interval, except multiples that pass while a
// request is running.
func (c *Canary) writeAll(ctx context.Context) {
	began := c.now()
	last := began.Truncate(c.opt.Interval)
	for tried := 0; c.opt.Traces == 0 || tried < c.opt.Traces; tried++ {
		now := c.now()
		next := now.Truncate(c.opt.Interval).Add(c.opt.Interval)
		if c.opt.Duration > 0 && next.Sub(began) > c.opt.Duration || !pause(ctx, next.Sub(now)) {
			return
		}
		at := c.now().Truncate(c.opt.Interval)
		if !at.After(last) { // the clock was set back: do not write a trace twice
			at = last.Add(c.opt.Interval)
		}
		last = at
		c.write(ctx, at)
	}
}

func (c *Canary) write(ctx context.Context, at time.Time) {
	t := generate(c.opt.Seed, at)
	began := c.now()
	err := c.api.write(ctx, t.encode())
	if err != nil && ctx.Err() != nil {
		return // canceled, not failed
	}
	acked := c.now()
	c.mu.Lock()
	if err == nil {
		c.summary.Written++
	} else {
		c.summary.WriteFailures++
	}
	c.mu.Unlock()
	if err != nil {
		c.metrics.failures.Inc()
		c.log.Warn("canary trace was not acknowledged", zap.Stringer("trace-id", t.id), zap.Time("at", at), zap.Error(err))
		return
	}
	c.metrics.written.Inc()
	c.metrics.writeLatency.Observe(acked.Sub(began).Seconds())
	c.remember(remembered{at: at, acked: acked}, 0)
}

func (c *Canary) remember(r remembered, age int) {
	if c.memory.addTrace(r, age) {
		c.metrics.forgotten.Inc()
	}
}

// readAll reads traces when they are due. After the last write, it ends when all traces have been
// read once.
func (c *Canary) readAll(ctx context.Context, written <-chan struct{}) {
	done := false
	for ctx.Err() == nil {
		r, age, wait := c.memory.takeDue(c.now())
		if age >= 0 {
			c.readTrace(ctx, r, age)
			continue
		}
		if done && c.memory.unread() == 0 {
			return
		}
		done = c.await(ctx, wait, written, done)
	}
}

// await waits until a reading is due, something new can be read, or writing ends. It reports
// whether writing has ended.
func (c *Canary) await(ctx context.Context, wait time.Duration, written <-chan struct{}, done bool) bool {
	if done {
		written = nil // closed: would not block
	}
	var due <-chan time.Time
	if wait >= 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-due:
	case <-c.memory.added:
	case <-written:
		return true
	}
	return done
}

// readTrace reads a trace through each API, and schedules the next reading.
func (c *Canary) readTrace(ctx context.Context, r remembered, age int) {
	t := generate(c.opt.Seed, r.at)
	want := t.show()
	for w := range ways {
		began := c.now()
		got, err := c.api.read(ctx, w, t)
		if err != nil && ctx.Err() != nil {
			return
		}
		c.metrics.readLatency.WithLabelValues(w.String()).Observe(c.now().Sub(began).Seconds())
		result, detail := Failed, ""
		if err == nil {
			result, detail = c.compare.traces(want, got)
		} else {
			detail = err.Error()
		}
		result = r.judge(w, result)
		c.count(w, result)
		c.logReading(t, w, began.Sub(r.acked), result, detail)
	}
	if age+1 < len(c.opt.Ages) {
		c.remember(r, age+1)
	}
}

// judge records the result of a reading, and returns it with earlier results taken into account.
func (r *remembered) judge(w way, result Result) Result {
	if result == OK && r.missed[w] {
		result = Late
	}
	if result != Failed {
		r.missed[w] = result == Missing
	}
	return result
}

func (c *Canary) count(w way, r Result) {
	c.metrics.reads.WithLabelValues(w.String(), r.String()).Inc()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.summary.Reads[w][r]++
}

func (c *Canary) logReading(t *trace, w way, age time.Duration, r Result, detail string) {
	fields := []zap.Field{zap.Stringer("trace-id", t.id), zap.Stringer("how", w), zap.Stringer("result", r), zap.Duration("age", age),
		zap.String("detail", detail)}
	switch r {
	case Late:
		c.log.Info("canary trace appeared late", fields...)
	case Missing, Wrong:
		c.log.Error("canary trace differs from the written trace", fields...)
	case Failed:
		c.log.Warn("cannot read canary trace", fields...)
	}
}

// pause waits, and reports whether the whole time has passed.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
