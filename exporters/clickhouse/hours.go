package clickhouse

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	hourLength = uint64(time.Hour)
	// maxHours is the maximum number of hours with spans for which a query uses cached calls.
	maxHours = 20_000
	// Results are cached when their hours have not changed for the time settled. By then, all
	// replicas have the spans.
	settled = 5 * time.Minute
	// settledOnServer is like settled if there are no replicas.
	settledOnServer = 5 * time.Second
	// hoursBefore and hoursAfter are the hours whose spans affect the calls of an hour: parents and
	// peers start at most callReach earlier, and counterparts of calls to peers hardly ever more
	// than an hour later.
	hoursBefore = uint64(callReach / time.Hour)
	hoursAfter  = 1
)

// storedHour describes the stored spans that start within an hour. Hours count from the Unix epoch.
type storedHour struct {
	number uint64
	spans  uint64 // number of stored spans, including expired and deleted ones
	stored time.Time
}

// hours returns the hours with spans between two times. more is true if there are more than
// maxHours. If a shard does not respond, the error matches shardMissing.
func (e *exporter) hours(ctx context.Context, tenant string, from, to uint64) (found storedHours, more bool, _ error) {
	sql := "SELECT toUInt64(hour) AS number, sum(spans), max(stored), (" + e.epochQuery(tenant) + "), toUInt64(toUnixTimestamp(now())) " +
		"FROM " + e.db.Table("hours") + " WHERE " + where.Tenant(tenant) +
		" AND hour BETWEEN " + where.Uint(from/hourLength) + " AND " + where.Uint(to/hourLength) +
		" GROUP BY number ORDER BY number LIMIT " + strconv.Itoa(maxHours+1)
	err := e.each(wholeCluster(ctx), sql, func(r row) error {
		var h storedHour
		var stored, now uint64
		if err := r.Scan(&h.number, &h.spans, &stored, &found.epoch, &now); err != nil {
			return err
		}
		seconds := func(n uint64) time.Time { return time.Unix(int64(min(n, math.MaxUint32)), 0) }
		h.stored, found.now = seconds(stored), seconds(now)
		found.hours = append(found.hours, h)
		return nil
	})
	if err != nil {
		return storedHours{}, false, fmt.Errorf("reading the hours with spans: %w", err)
	}
	return found, len(found.hours) > maxHours, nil
}

// storedHours are the hours with spans of a window and, for calls, the hours near it.
type storedHours struct {
	hours []storedHour // in order
	epoch uint64       // of the tenant's deletions
	now   time.Time    // of the server, whose clock also determines storedHour.stored
}

// around returns the hours with spans that affect the calls of an hour.
func (s *storedHours) around(number uint64) storedHours {
	first := sort.Search(len(s.hours), func(i int) bool { return s.hours[i].number+hoursBefore >= number })
	end := sort.Search(len(s.hours), func(i int) bool { return s.hours[i].number > number+hoursAfter })
	return storedHours{hours: s.hours[first:end], epoch: s.epoch, now: s.now}
}

// state returns a number that changes whenever spans of the hours are stored or deleted.
func (s *storedHours) state() uint64 {
	h := sha256.New()
	put := func(n uint64) { _ = binary.Write(h, binary.BigEndian, n) } // a hash cannot fail
	put(s.epoch)
	for _, o := range s.hours {
		put(o.number)
		put(o.spans)
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// unchangedFor reports whether no spans of the hours were stored for a time, and no deletion runs.
func (s *storedHours) unchangedFor(length time.Duration) bool {
	isRecent := func(h storedHour) bool { return s.now.Sub(h.stored) < length }
	return s.epoch%2 == 0 && !slices.ContainsFunc(s.hours, isRecent)
}

// isSettled reports whether this process can cache results that depend on the hours: all servers
// have their spans.
func (e *exporter) isSettled(s *storedHours) bool {
	if e.cfg.Cluster.Name == "" && len(e.cfg.Endpoints) == 1 && !e.shared.Load() {
		return s.unchangedFor(settledOnServer)
	}
	return s.unchangedFor(settled)
}

// hourWindow is the part of an hour within the window of a query.
type hourWindow struct {
	callWindow
	number  uint64
	whole   bool   // the window contains the whole hour
	state   uint64 // see storedHours.state
	settled bool   // the calls can be cached
}

// windows returns the parts of hours with spans within the window.
func (s *storedHours) windows(from, to uint64) []*hourWindow {
	var out []*hourWindow
	for _, h := range s.hours {
		first := h.number * hourLength
		last := first + min(hourLength-1, ^uint64(0)-first)
		if last < from || first > to {
			continue
		}
		w := &hourWindow{callWindow: callWindow{from: max(from, first), to: min(to, last)}, number: h.number}
		w.whole = w.from == first && w.to == last
		if w.whole {
			around := s.around(h.number)
			w.state, w.settled = around.state(), around.unchangedFor(settled)
		}
		out = append(out, w)
	}
	return out
}

// calls calls add with the calls whose spans start between from and to. The same key may occur
// several times. It takes the calls of whole hours from the cache, or adds them to it. If service
// is not "", calls of other services may be missing.
func (e *exporter) calls(
	ctx context.Context, tenant, service string, from, to time.Time, add func(*callSum),
) (missing missingCalls, err error) {
	if err := ctx.Err(); err != nil {
		return missing, err
	}
	first, last, ok := tracestore.Query{From: from, To: to}.Window()
	if !ok {
		return missing, nil
	}
	before := hoursBefore * hourLength
	stored, more, err := e.hours(ctx, tenant, first-min(first, before), last+min(^uint64(0)-last, hoursAfter*hourLength))
	if err != nil && !shardMissing(err) {
		return missing, err
	}
	windows := [][]*hourWindow{stored.windows(first, last)} // those in one list are read together
	if more || err != nil {                                 // without the cache
		windows = [][]*hourWindow{{{callWindow: callWindow{from: first, to: last}}}}
	}
	key := "" // of the result in the cache; empty: not cached
	state, now := stored.state(), e.set.Env.Now()
	if !more && err == nil && e.isPast(last) && e.isSettled(&stored) {
		key = callsBetween(tenant, first, last)
		if e.results.eachCall(key, state, now, add) {
			return missing, nil
		}
		parts := splitMinutes(first, last)
		if parts.first < parts.end && e.results.eachCall(callsBetween(tenant, parts.first*minute, parts.end*minute-1), state, now, add) {
			key, windows = "", nil
			for _, w := range parts.rest {
				windows = append(windows, stored.windows(w[0], w[1]))
			}
		}
	}
	var sums []callSum // to cache
	size := 0
	each := func(s *callSum) {
		if key != "" {
			c, bytes := s.ownCopy()
			sums = append(sums, c)
			if size += bytes; size > maxResultSize {
				key, sums = "", nil
			}
		}
		add(s)
	}
	count := func(service string, windows []*hourWindow) error {
		for _, pass := range passesOf(windows) {
			m, err := e.countPass(ctx, tenant, service, pass, each)
			missing.or(m)
			if err != nil {
				return err
			}
		}
		return nil
	}
	for _, together := range windows {
		rest, m, err := e.cachedCalls(ctx, tenant, together, each)
		missing.or(m)
		if err != nil {
			return missing, err
		}
		var all, ofService []*hourWindow // by whose calls are needed
		for _, w := range rest {
			if service == "" || w.settled {
				all = append(all, w)
			} else {
				ofService, key = append(ofService, w), ""
			}
		}
		if err := count("", all); err != nil {
			return missing, err
		}
		if err := count(service, ofService); err != nil {
			return missing, err
		}
	}
	if key != "" && !missing.peers && missing.ofServices().Complete() {
		e.results.store(key, cachedResult{state: state, until: now.Add(resultTime), size: size, value: slices.Clip(sums)})
	}
	return missing, nil
}

// callsBetween returns the key of the calls between two times in the cache.
func callsBetween(tenant string, from, to uint64) string {
	return fmt.Sprintf("calls %q %d %d", tenant, from, to)
}

// countPass counts the calls of windows and caches the calls of whole hours. If service is not "",
// it may leave out calls of other services.
func (e *exporter) countPass(
	ctx context.Context, tenant, service string, pass []*hourWindow, add func(*callSum),
) (missing missingCalls, _ error) {
	windows := make([]*callWindow, len(pass))
	for i, w := range pass {
		windows[i] = &w.callWindow
	}
	missing, err := e.countWindows(wholeCluster(ctx), tenant, service, windows)
	if shardMissing(err) {
		for _, w := range windows {
			w.table = callTable{}
		}
		missing, err = e.countWindows(ctx, tenant, service, windows)
		if missing.shards = e.missingShards(ctx); missing.shards.Complete() {
			missing.shards = tracestore.Because(tracestore.ReasonUnavailable, "a shard did not respond")
		}
	}
	if err != nil {
		return missing, err
	}
	var cached []cachedHour
	for _, w := range pass {
		for i := range w.table.sums {
			add(&w.table.sums[i])
		}
		if service == "" && w.settled && missing.ofServices().Complete() && w.number <= math.MaxUint32 {
			cached = append(cached, cachedOf(w))
		}
		w.table = callTable{}
	}
	for hours := range slices.Chunk(cached, hoursPerPass) {
		e.cacheCalls(ctx, tenant, hours)
	}
	return missing, nil
}

const (
	// hoursPerPass is the maximum number of hours from the first to the last of a pass.
	hoursPerPass = 24
	// maxPasses is the maximum number of passes of one query. Further passes are joined.
	maxPasses = 64
)

// passesOf divides windows into groups that are read together.
func passesOf(windows []*hourWindow) (passes [][]*hourWindow) {
	from := 0
	for i := range windows {
		if windows[i].number-windows[from].number >= hoursPerPass {
			passes = append(passes, windows[from:i])
			from = i
		}
	}
	if from < len(windows) {
		passes = append(passes, windows[from:])
	}
	if len(passes) > maxPasses {
		return [][]*hourWindow{windows}
	}
	return passes
}
