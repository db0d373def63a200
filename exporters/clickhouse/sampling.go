package clickhouse

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

var _ sampling.Store = (*exporter)(nil)

// AddThroughput implements sampling.ThroughputStore. Old counts are no longer returned, and expire
// with the table.
func (e *exporter) AddThroughput(ctx context.Context, t sampling.Throughput, since time.Time) error {
	if err := t.Check(); err != nil {
		return pipeline.Permanent(err)
	}
	body, err := json.Marshal(t)
	if err != nil {
		return pipeline.Permanent(fmt.Errorf("encoding throughput: %w", err))
	}
	err = e.db.Insert(ctx, db.Insert{
		Table: "sampling_throughput", Columns: []string{"until", "since", "body"}, Token: rand.Text(),
		Fill: func(b driver.Batch) error {
			return b.Append(t.Until.UnixNano(), since.UnixNano(), string(body))
		},
	})
	if err != nil {
		return fmt.Errorf("storing throughput: %w", err)
	}
	return nil
}

// Throughput implements sampling.ThroughputStore.
func (e *exporter) Throughput(ctx context.Context, after, until time.Time) ([]sampling.Throughput, error) {
	table := e.db.Table("sampling_throughput")
	sql := "SELECT body FROM (SELECT until, body, added FROM " + table + " WHERE until > (SELECT max(since) FROM " + table + ")" +
		" ORDER BY added DESC LIMIT " + strconv.Itoa(sampling.MaxThroughputs) + ")" +
		" WHERE until > " + unixNano(after) + " AND until <= " + unixNano(until) + " ORDER BY added DESC"
	var all []sampling.Throughput
	n := 0
	err := e.each(wholeCluster(ctx), sql, func(r row) error {
		var body string
		if err := r.Scan(&body); err != nil {
			return err
		}
		var t sampling.Throughput
		if err := json.Unmarshal([]byte(body), &t); err != nil {
			return err
		}
		if err := t.Check(); err != nil {
			return err
		}
		if n += len(t.Rows); n <= sampling.MaxRows || len(all) == 0 {
			all = append(all, t)
		}
		return r.grow(len(body))
	})
	if err != nil {
		return nil, fmt.Errorf("reading throughput: %w", err)
	}
	slices.Reverse(all)
	return all, nil
}

// unixNano returns the literal of a time, limited to what Int64 holds.
func unixNano(t time.Time) string {
	const year = 365 * 24 * time.Hour
	switch epoch := time.Unix(0, 0); {
	case t.Before(epoch.Add(-250 * year)):
		return "toInt64(-9223372036854775807)"
	case t.After(epoch.Add(250 * year)):
		return "toInt64(9223372036854775807)"
	}
	return "toInt64(" + strconv.FormatInt(t.UnixNano(), 10) + ")"
}

// SaveCalculation implements sampling.CalculationStore.
func (e *exporter) SaveCalculation(ctx context.Context, c *sampling.Calculation) error {
	if err := c.Check(); err != nil {
		return pipeline.Permanent(err)
	}
	body, err := json.Marshal(c)
	if err != nil {
		return pipeline.Permanent(fmt.Errorf("encoding calculation: %w", err))
	}
	err = e.db.Insert(ctx, db.Insert{
		Table: "sampling_calculations", Columns: []string{"body"}, Token: rand.Text(),
		Fill: func(b driver.Batch) error { return b.Append(string(body)) },
	})
	if err != nil {
		return fmt.Errorf("storing calculation: %w", err)
	}
	return nil
}

// LatestCalculation implements sampling.CalculationStore.
func (e *exporter) LatestCalculation(ctx context.Context) (c *sampling.Calculation, _ error) {
	sql := "SELECT body FROM " + e.db.Table("sampling_calculations") + " ORDER BY added DESC LIMIT 1"
	err := e.each(wholeCluster(ctx), sql, func(r row) error {
		var body string
		if err := r.Scan(&body); err != nil {
			return err
		}
		c = &sampling.Calculation{}
		if err := json.Unmarshal([]byte(body), c); err != nil {
			return err
		}
		return c.Check()
	})
	if err != nil {
		return nil, fmt.Errorf("reading the latest calculation: %w", err)
	}
	return c, nil
}

// A lease is a row of the table "sampling_leases" with a term, which grows by one with each change
// of the lease. A collector that wants to change the lease inserts a row with the next term, whose
// deduplication token is made of resource and term. If several collectors do this at the same time,
// the server stores the row of the first and ignores the others. Each of them then reads the row of
// this term to find out which one was first. In a replicated table the tokens are in the
// coordination service, so the same holds for all replicas: a replica that has lost contact with it
// refuses the insert, and the collector gets an error instead of a lease.

// claim is one row of the table "sampling_leases".
type claim struct {
	resource string
	term     uint64
	sampling.Lease
}

// maxClaims is the number of times that Lease tries to become the owner of a lease that others
// change at the same time.
const maxClaims = 3

// Lease implements sampling.LeaseStore. Times come from the collector's clock, so the clocks of
// collectors must agree: a collector whose clock is ahead takes over early by the difference.
func (e *exporter) Lease(ctx context.Context, resource, owner string, ttl time.Duration) (sampling.Lease, error) {
	for try := 1; ; try++ {
		held, err := e.latestClaim(ctx, resource, 0)
		if err != nil {
			return sampling.Lease{}, err
		}
		now := e.set.Env.Now()
		if held.Owner != owner && held.Until.After(now) {
			return held.Lease, nil
		}
		own := claim{resource, held.term + 1, sampling.Lease{Owner: owner, Until: now.Add(ttl)}}
		got, err := e.claim(ctx, own)
		if err != nil {
			return sampling.Lease{}, err
		}
		if got.Owner == owner && got.Until.Equal(own.Until) || got.Owner != owner && got.Until.After(now) || try == maxClaims {
			return got.Lease, nil
		}
	}
}

// EndLease implements sampling.LeaseStore.
func (e *exporter) EndLease(ctx context.Context, resource, owner string) error {
	held, err := e.latestClaim(ctx, resource, 0)
	if err != nil || held.Owner != owner || !held.Until.After(e.set.Env.Now()) {
		return err
	}
	_, err = e.claim(ctx, claim{resource: resource, term: held.term + 1})
	return err
}

// claim inserts a row and returns the row of this term, or of a later one. If the server remembers
// the token of the term without its row (see forgetsRows), no collector can become the owner with
// this term, and claim continues with the next.
func (e *exporter) claim(ctx context.Context, c claim) (claim, error) {
	got, err := e.insertClaim(ctx, c)
	if !errors.Is(err, errNoRow) || !e.forgetsRows() {
		return got, err
	}
	e.log.Warn("the row of a lease was lost in a crash of the server; claiming the next term", zap.String("resource", c.resource),
		zap.Uint64("term", c.term))
	c.term++
	return e.insertClaim(ctx, c)
}

func (e *exporter) insertClaim(ctx context.Context, c claim) (claim, error) {
	until := int64(0)
	if !c.Until.IsZero() {
		until = c.Until.UnixNano()
	}
	err := e.db.Insert(ctx, db.Insert{
		Table: "sampling_leases", Columns: []string{"resource", "term", "owner", "until"},
		Token: fmt.Sprintf("lease %d %q", c.term, c.resource),
		Fill:  func(b driver.Batch) error { return b.Append(c.resource, c.term, c.Owner, until) },
	})
	if err != nil {
		return claim{}, fmt.Errorf("storing lease %q: %w", c.resource, err)
	}
	return e.latestClaim(ctx, c.resource, c.term)
}

const (
	// replicaWait is how long a replica may take to get a row from another replica.
	replicaWait = 5 * time.Second
	// replicaPoll is the time between two reads of it.
	replicaPoll = 50 * time.Millisecond
)

var errNoRow = errors.New("no replica has the row")

// latestClaim returns the row of a resource with the highest term, which is at least term. It waits
// for a replica that does not have the row yet. If no replica gets it, the error matches errNoRow.
func (e *exporter) latestClaim(ctx context.Context, resource string, term uint64) (claim, error) {
	timeout := time.After(replicaWait)
	sql := "SELECT term, owner, until FROM " + e.db.Table("sampling_leases") + " WHERE resource = " + where.Text(resource) +
		" ORDER BY term DESC LIMIT 1"
	for {
		c := claim{resource: resource}
		var until int64
		err := e.each(wholeCluster(ctx), sql, func(r row) error { return r.Scan(&c.term, &c.Owner, &until) })
		if err != nil {
			return claim{}, fmt.Errorf("reading lease %q: %w", resource, err)
		}
		if until != 0 {
			c.Until = time.Unix(0, until)
		}
		if c.term >= term {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return claim{}, fmt.Errorf("reading lease %q: %w", resource, ctx.Err())
		case <-timeout:
			return claim{}, fmt.Errorf("reading lease %q: %w of term %d", resource, errNoRow, term)
		case <-time.After(replicaPoll):
		}
	}
}
