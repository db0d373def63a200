package clickhouse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

var _ tracestore.Follower = (*exporter)(nil)

const (
	// pollInterval is the time between two reads of the spans that other processes have stored.
	pollInterval = 500 * time.Millisecond
	// pollTimeout is the maximum time of one read.
	pollTimeout = 10 * time.Second
	// pollOverlap is the time by which spans may become visible later than others that were stored
	// after them.
	pollOverlap = time.Minute
	// maxPolledSpans is the maximum number of spans of a tenant per read. Feeds miss the rest.
	maxPolledSpans = 100_000
	// maxPolledInserts is the maximum number of inserts of a tenant per read.
	maxPolledInserts = 100_000
)

// follower publishes the inserts of other processes, which it finds by the column batch of the
// table "payload". It reads the table only while there are feeds. It is safe for concurrent use.
type follower struct {
	store *exporter
	// cancel ends the running reads; ended is done when they have ended.
	cancel context.CancelFunc
	ctx    context.Context
	ended  sync.WaitGroup

	mu      sync.Mutex
	running bool
	own     map[uint64]time.Time // inserts of this process, which are published by themselves
	cursors map[string]*cursor   // by tenant
}

func newFollower(e *exporter) *follower {
	f := &follower{store: e, own: make(map[uint64]time.Time), cursors: make(map[string]*cursor)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// stop ends the reads.
func (f *follower) stop() {
	f.mu.Lock()
	f.cancel() // no further read begins
	f.mu.Unlock()
	f.ended.Wait()
}

// stored records an insert of this process before it begins.
func (f *follower) stored(batch uint64) {
	const pruned = 1 << 14
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.own[batch] = now
	if len(f.own)%pruned == 0 {
		for b, at := range f.own {
			if now.Sub(at) > 2*pollOverlap {
				delete(f.own, b)
			}
		}
	}
}

func (f *follower) isOwn(batch uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, own := f.own[batch]
	return own
}

// Follow implements tracestore.Follower. Spans that other processes store arrive about a second
// later than this process's own spans.
func (e *exporter) Follow(ctx context.Context, tenant string, capacity int) (*tracestore.Feed, error) {
	feed, err := e.feeds.Follow(ctx, tenant, capacity)
	if err != nil {
		return nil, err
	}
	if err := e.follower.open(ctx, tenant); err != nil {
		feed.Close()
		return nil, err
	}
	e.follower.run()
	return feed, nil
}

// cursor is the position in the inserts of a tenant.
type cursor struct {
	since  int64             // inserts that were stored before are done, in milliseconds
	seen   map[uint64]insert // inserts that were stored since, except this process's own
	logged bool              // the latest read failed
}

// insert is what is known of an insert.
type insert struct {
	stored int64 // milliseconds since the Unix epoch
	spans  uint64
	done   bool // was published
}

// open prepares the cursor of a tenant with a feed, unless there is one. Earlier inserts are not
// published.
func (f *follower) open(ctx context.Context, tenant string) error {
	f.mu.Lock()
	known := f.cursors[tenant] != nil
	f.mu.Unlock()
	if known {
		return nil
	}
	c := &cursor{seen: make(map[uint64]insert)}
	err := f.store.each(ctx, "SELECT toUnixTimestamp64Milli(now64(3))", func(r row) error { return r.Scan(&c.since) })
	if err != nil {
		return fmt.Errorf("following spans: %w", err)
	}
	c.since -= pollOverlap.Milliseconds()
	found, err := f.inserts(ctx, tenant, c.since)
	if err != nil {
		return err
	}
	for batch, in := range found {
		in.done = true
		c.seen[batch] = in
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cursors[tenant] == nil {
		f.cursors[tenant] = c
	}
	return nil
}

// run starts the reads if they are not running.
func (f *follower) run() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running || f.ctx.Err() != nil {
		return
	}
	f.running = true
	f.ended.Go(func() {
		tick := time.NewTicker(pollInterval)
		defer tick.Stop()
		for f.poll() {
			select {
			case <-f.ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
}

// poll publishes the inserts of all tenants with feeds. It returns false if there are no feeds any
// more.
func (f *follower) poll() bool {
	for tenant, c := range f.followed() {
		ctx, cancel := context.WithTimeout(f.ctx, pollTimeout)
		err := f.publish(ctx, tenant, c)
		cancel()
		if err != nil && f.ctx.Err() == nil && !c.logged {
			f.store.log.Warn("cannot read the spans that other processes stored; will retry", zap.String("tenant", tenant), zap.Error(err))
		}
		c.logged = err != nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running = len(f.store.feeds.Tenants()) > 0; !f.running {
		clear(f.cursors) // a later feed begins with later inserts
	}
	return f.running
}

// followed returns the cursors of the tenants with feeds and drops all others.
func (f *follower) followed() map[string]*cursor {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := make(map[string]*cursor)
	for _, t := range f.store.feeds.Tenants() {
		if c := f.cursors[t]; c != nil {
			kept[t] = c
		}
	}
	f.cursors = kept
	return maps.Clone(kept)
}

// inserts returns the inserts of a tenant that were stored at or after a time in milliseconds.
func (f *follower) inserts(ctx context.Context, tenant string, since int64) (map[uint64]insert, error) {
	sql := "SELECT toUInt64(batch), toInt64OrZero(min(stored)), count() FROM " + f.store.db.Table("payload") + " WHERE " +
		where.Tenant(tenant) + " AND " + storedSince(since) + " GROUP BY batch LIMIT " + strconv.Itoa(maxPolledInserts)
	found := make(map[uint64]insert)
	err := f.store.each(ctx, sql, func(r row) error {
		var batch uint64
		var in insert
		if err := r.Scan(&batch, &in.stored, &in.spans); err != nil {
			return err
		}
		found[batch] = in
		return nil
	})
	return found, err
}

func storedSince(ms int64) string {
	return fmt.Sprintf("stored >= '%013d'", ms)
}

// publish publishes the inserts of a tenant that are complete.
func (f *follower) publish(ctx context.Context, tenant string, c *cursor) error {
	found, err := f.inserts(ctx, tenant, c.since)
	if err != nil {
		return err
	}
	ready, missed := c.update(found, f.isOwn)
	f.store.feeds.Miss(tenant, missed)
	if len(ready) == 0 {
		return nil
	}
	if err := f.read(ctx, tenant, c, ready); err != nil {
		return err
	}
	for _, b := range ready {
		c.finish(b)
	}
	return nil
}

// finish records that an insert must not be republished.
func (c *cursor) finish(batch uint64) {
	in := c.seen[batch]
	in.done = true
	c.seen[batch] = in
}

// update adds the found inserts and returns the inserts to publish, in order. These are inserts
// that have not changed since the last call, because the rows of an insert become visible part by
// part. missed is the number of spans that cannot be published.
func (c *cursor) update(found map[uint64]insert, isOwn func(uint64) bool) (ready []uint64, missed int) {
	latest := c.since + pollOverlap.Milliseconds()
	for batch, in := range found {
		if isOwn(batch) {
			continue
		}
		latest = max(latest, in.stored)
		was, known := c.seen[batch]
		switch {
		case was.done && in.spans > was.spans:
			missed += int(in.spans - was.spans)
			in.done = true
		case was.done:
			in = was
		case known && in.spans == was.spans:
			ready = append(ready, batch)
		}
		c.seen[batch] = in
	}
	c.since = latest - pollOverlap.Milliseconds()
	for batch, in := range c.seen {
		if in.stored < c.since {
			if !in.done {
				missed += int(in.spans)
			}
			delete(c.seen, batch)
		}
	}
	ready = slices.DeleteFunc(ready, func(b uint64) bool { _, ok := c.seen[b]; return !ok })
	slices.SortFunc(ready, func(a, b uint64) int {
		return cmp.Or(cmp.Compare(c.seen[a].stored, c.seen[b].stored), cmp.Compare(a, b))
	})
	spans := 0
	for i, b := range ready {
		in := c.seen[b]
		if spans += int(in.spans); spans <= maxPolledSpans {
			continue
		}
		for _, b := range ready[i:] {
			c.finish(b)
			missed += int(c.seen[b].spans)
		}
		return ready[:i], missed
	}
	return ready, missed
}

// read reads inserts and publishes them. If it fails, feeds miss the rest of the current insert,
// and later inserts are published by a later call.
func (f *follower) read(ctx context.Context, tenant string, c *cursor, inserts []uint64) error {
	ids := make([]string, len(inserts))
	for i, b := range inserts {
		ids[i] = where.Text(where.Uint(b))
	}
	sql := "SELECT " + rows.PayloadColumns + ", toUInt64(batch) FROM " + f.store.db.Table("payload") +
		" WHERE " + where.Tenant(tenant) + " AND " + storedSince(c.since) + " AND batch IN (" + strings.Join(ids, ", ") +
		") ORDER BY batch, origin, trace_id, start"
	p := published{feeds: &f.store.feeds, tenant: tenant, cursor: c}
	var d rows.Decoder
	err := f.store.each(ctx, sql, func(r row) error {
		var batch uint64
		var s tracestore.Span
		payload, err := d.Scan(r, &batch)
		if err == nil {
			s, err = d.Span(payload)
		}
		if damaged := (*tracestore.DamagedError)(nil); err != nil && !errors.As(err, &damaged) {
			return err
		}
		p.begin(batch)
		if err != nil {
			p.feeds.Miss(tenant, 1)
			return nil
		}
		p.add(&s)
		return nil
	})
	p.end(err)
	return err
}

// published collects spans of one insert.
type published struct {
	feeds  *tracestore.Hub
	tenant string
	cursor *cursor
	insert uint64
	left   uint64 // spans of the insert that were not read yet

	chunk    []byte
	counts   []otlpdata.ServiceCount
	resource *otlpdata.Resource // of the spans that are not in the chunk yet
	scope    *otlpdata.Scope
	count    otlpdata.ServiceCount
	spans    [][]byte
	size     int
}

// maxPublished is the size above which an insert is published as several batches.
const maxPublished = 1 << 20

// begin is called before each span, with its insert.
func (p *published) begin(insert uint64) {
	if insert != p.insert {
		p.flush()
		p.insert, p.left = insert, p.cursor.seen[insert].spans
		p.cursor.finish(insert)
	}
	p.left -= min(p.left, 1)
}

// end is called after the last span, or with the error that ended reading.
func (p *published) end(err error) {
	p.flush()
	if err != nil {
		p.feeds.Miss(p.tenant, int(p.left))
	}
}

func (p *published) add(s *tracestore.Span) {
	if s.Resource != p.resource || s.Scope != p.scope {
		p.closeGroup()
		p.resource, p.scope = s.Resource, s.Scope
		p.count = otlpdata.ServiceCount{Service: s.Resource.Service}
	}
	p.spans = append(p.spans, s.Raw)
	p.count.Add(s.ParentID.IsZero(), s.NativeFlags()&otlpdata.FlagDebug != 0)
	if p.size += len(s.Raw); p.size >= maxPublished {
		p.flush()
	}
}

// closeGroup adds the spans of a resource and a scope to the chunk.
func (p *published) closeGroup() {
	if len(p.spans) > 0 {
		p.chunk = otlpdata.AppendResourceSpans(p.chunk, p.resource, p.scope, p.spans...)
		p.counts = append(p.counts, p.count)
	}
	p.spans, p.resource = nil, nil
}

// flush publishes the spans.
func (p *published) flush() {
	p.closeGroup()
	if len(p.chunk) > 0 {
		p.feeds.Publish(otlpdata.FromStored(p.chunk, otlpdata.Meta{Tenant: p.tenant}, p.counts...))
	}
	p.chunk, p.counts, p.size = nil, nil, 0
}
