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

// hourWindow is an hour or a part of one within the window of a query. Windows that overlap have
// most parts in common, and use the same cached calls.
type hourWindow struct {
	callWindow
	number  uint64 // of the hour
	index   int    // among the windows of the query
	whole   bool   // the whole hour
	around  storedHours
	state   uint64 // of around
	settled bool   // the calls can be cached in the table
	key     string // of the calls in the memory of this process; empty: not cached
}

// partLength is the length of the parts of an hour. The rest before and after them is divided into
// minutes.
const partLength = 5 * minute

// windows returns the parts of hours with spans within the window.
func (s *storedHours) windows(from, to uint64) []*hourWindow {
	var out []*hourWindow
	for _, h := range s.hours {
		first := h.number * hourLength
		last := first + min(hourLength-1, ^uint64(0)-first)
		if last < from || first > to {
			continue
		}
		around := s.around(h.number)
		state := around.state()
		for _, part := range partsOf(max(from, first), min(to, last)) {
			w := &hourWindow{callWindow: part, number: h.number, index: len(out), around: around, state: state}
			w.whole = w.from == first && w.to == last
			w.settled = w.whole && around.unchangedFor(settled)
			out = append(out, w)
		}
	}
	return out
}

// partsOf divides a window within an hour into the longest parts that other windows may share.
func partsOf(from, to uint64) (parts []callWindow) {
	for {
		end := to
		for _, length := range []uint64{hourLength, partLength, minute} {
			begin := from - from%length
			if (begin == from || length == minute) && to-begin >= length-1 {
				end = begin + length - 1
				break
			}
		}
		parts = append(parts, callWindow{from: from, to: end})
		if end == to {
			return parts
		}
		from = end + 1
	}
}

// calls calls add with the calls whose spans start between from and to. The same key may occur
// several times. It takes the calls of hours and their parts from the caches, or adds them to the
// caches. If service is not "", calls of other services may be missing.
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
	windows := stored.windows(first, last)
	if more || err != nil { // without the caches
		windows = []*hourWindow{{callWindow: callWindow{from: first, to: last}}}
	} else {
		windows = e.callsInMemory(tenant, windows, add)
	}
	windows, missing, err = e.cachedCalls(ctx, tenant, windows, add)
	if err != nil {
		return missing, err
	}
	var all, ofService []*hourWindow // by whose calls are needed
	for _, w := range windows {
		if service == "" || w.settled {
			all = append(all, w)
		} else {
			ofService = append(ofService, w)
		}
	}
	for _, part := range []struct {
		service string
		windows []*hourWindow
	}{{"", all}, {service, ofService}} {
		for _, pass := range passesOf(part.windows) {
			m, err := e.countPass(ctx, tenant, part.service, pass, add)
			missing.or(m)
			if err != nil {
				return missing, err
			}
		}
	}
	return missing, nil
}

// callsInMemory adds the calls of windows that this process has cached. It returns the other
// windows, and sets the key of those whose calls can be cached in memory.
func (e *exporter) callsInMemory(tenant string, windows []*hourWindow, add func(*callSum)) (rest []*hourWindow) {
	now := e.set.Env.Now()
	for _, w := range windows {
		if e.isPast(w.to) && e.isSettled(&w.around) {
			w.key = fmt.Sprintf("calls %q %d %d", tenant, w.from, w.to)
		}
		sums, ok := e.results.lookup(w.key, w.state, now).([]callSum)
		if !ok {
			rest = append(rest, w)
		}
		for i := range sums {
			add(&sums[i])
		}
	}
	return rest
}

// countPass counts the calls of windows and caches them. If service is not "", it may leave out
// calls of other services.
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
	isComplete := service == "" && missing.ofServices().Complete()
	for _, w := range pass {
		for i := range w.table.sums {
			add(&w.table.sums[i])
		}
		switch {
		case isComplete && w.settled && w.number <= math.MaxUint32:
			cached = append(cached, cachedOf(w))
		case isComplete && w.key != "" && !w.table.omitted:
			sums, size := w.table.ownCopies()
			until := e.set.Env.Now().Add(resultTime)
			e.results.store(w.key, cachedResult{state: w.state, until: until, size: size, value: sums})
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

// passesOf divides windows into groups that are read together, without windows between them whose
// calls are known.
func passesOf(windows []*hourWindow) (passes [][]*hourWindow) {
	from := 0
	for i, w := range windows {
		if w.number-windows[from].number >= hoursPerPass || i > 0 && w.index != windows[i-1].index+1 {
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
