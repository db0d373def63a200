package clickhouse

import (
	"context"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/status"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Usage implements tracestore.UsageReporter. Bytes cover all tables and all shards, but not all
// replicas.
func (e *exporter) Usage(ctx context.Context, _ string) (tracestore.Usage, error) {
	u := tracestore.Usage{Retention: e.cfg.Retention.Spans.Std()}
	bytes, err := e.number(ctx, "SELECT toUInt64(sum(bytes_on_disk))"+e.parts())
	if err != nil {
		return u, err
	}
	u.Bytes = int64(bytes)
	err = e.addTimes(ctx, &u)
	return u, err
}

// parts returns the rest of a statement that reads the parts of the tables.
func (e *exporter) parts() string {
	from := "system.parts"
	if e.cfg.Cluster.Sharded {
		from = "cluster(" + where.Text(e.cfg.Cluster.Name) + ", system.parts)"
	}
	return " FROM " + from + " WHERE active AND database = " + where.Text(e.cfg.Database)
}

// addTimes adds the times of the oldest and newest spans. The first arrival comes from the spans of
// the two oldest days; the starts come from these, from the newest day, and from spans that are not
// stored with their day.
func (e *exporter) addTimes(ctx context.Context, u *tracestore.Usage) error {
	const oldestDays = 2
	days, err := e.days(ctx)
	if err != nil || len(days) == 0 {
		return err
	}
	day := func(d storedDay) string { return "toDate(" + where.Text(d.Start.Format(time.DateOnly)) + ")" }
	sql := "SELECT toInt64OrZero(min(stored)), min(start), max(start) FROM " + e.db.Table("payload") + " WHERE day <= " +
		day(days[min(len(days), oldestDays)-1]) + " OR day >= " + day(days[len(days)-1]) + " OR odd = 1"
	return e.eachRow(ctx, sql, func(r db.Rows) error {
		var stored int64 // milliseconds
		var oldest, newest uint64
		if err := r.Scan(&stored, &oldest, &newest); err != nil {
			return err
		}
		if stored > 0 {
			u.Oldest = time.UnixMilli(stored).UTC()
		}
		u.AddStarts(oldest, newest)
		return nil
	})
}

// storedDay is a day of partitions.
type storedDay struct {
	status.Part
	bytes int64
}

// days returns the days with stored spans, oldest first.
func (e *exporter) days(ctx context.Context) (days []storedDay, err error) {
	sql := "SELECT toUInt64(toUInt16(min_date)), toUInt64(sumIf(rows, table = " + where.Text(e.tables.Local("payload")) +
		")), toUInt64(sum(bytes_on_disk))" + e.parts() + " AND min_date > toDate(0) GROUP BY min_date ORDER BY min_date"
	err = e.eachRow(ctx, sql, func(r db.Rows) error {
		var day, spans, bytes uint64
		if err := r.Scan(&day, &spans, &bytes); err != nil {
			return err
		}
		d := storedDay{bytes: int64(bytes)}
		d.Start, d.Spans = time.Unix(int64(day)*24*3600, 0).UTC(), int64(spans)
		if d.Spans > 0 {
			days = append(days, d)
		}
		return nil
	})
	return days, err
}

// StoreStatus implements status.StoreReporter. It sees arrivals by day.
func (e *exporter) StoreStatus(ctx context.Context) (status.Store, error) {
	s := status.Store{
		Place: strings.Join(e.cfg.Endpoints, ", ") + ", database " + e.cfg.Database, Retention: e.cfg.Retention.Spans.Std(),
	}
	bytes, err := e.number(ctx, "SELECT toUInt64(sum(bytes_on_disk))"+e.parts())
	if err != nil {
		return s, err
	}
	segments, err := e.number(ctx, "SELECT toUInt64(count())"+e.parts())
	if err != nil {
		return s, err
	}
	days, err := e.days(ctx)
	if err != nil {
		return s, err
	}
	s.Bytes, s.Segments = int64(bytes), int(segments)
	now := e.set.Env.Now()
	all := make([]status.Arrivals, 0, len(days))
	for _, d := range days {
		last := d.Start.Add(24*time.Hour - 1)
		if last.After(now) {
			last = now
		}
		all = append(all, status.Arrivals{First: d.Start, Last: last, Spans: d.Spans, Bytes: d.bytes})
	}
	s.SetArrivals(all, now)
	var u tracestore.Usage
	err = e.addTimes(ctx, &u)
	s.OldestStart = u.OldestTime()
	return s, err
}
