package clickhouse

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// row is the current row of a result.
type row struct {
	db.Rows
	memory *tracestore.Memory // of the query
}

// grow reserves memory for the kept part of the row.
func (r row) grow(bytes int) error { return r.memory.Grow(int64(bytes)) }

// each runs a statement and calls visit with each row of the result. The memory that visit reserves
// is released when each returns. Otherwise each is like eachRow.
func (e *exporter) each(ctx context.Context, sql string, visit func(row) error) error {
	m, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return err
	}
	defer m.Release()
	return e.eachRow(ctx, sql, func(r db.Rows) error { return visit(row{r, m}) })
}

// errStop ends a read early, without an error.
var errStop = errors.New("stop")

// eachRow calls visit for each row of a statement. If visit returns errStop, eachRow ends without
// an error. If ctx has ended, it returns the error of ctx.
func (e *exporter) eachRow(ctx context.Context, sql string, visit func(db.Rows) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	found, err := e.db.Select(ctx, sql)
	if err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	defer func() { _ = found.Close() }() // Err returns an error of the read
	for found.Next() {
		if err := visit(found); errors.Is(err, errStop) {
			return nil
		} else if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if err := found.Err(); err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	return ctx.Err()
}

// eachScanned calls visit for each row of a statement after it was read into some variables.
// Otherwise it is like eachRow.
func (e *exporter) eachScanned(ctx context.Context, sql string, to []any, visit func() error) error {
	return e.eachRow(ctx, sql, func(r db.Rows) error {
		if err := r.Scan(to...); err != nil {
			return err
		}
		return visit()
	})
}

// packed returns the expression of a text with arrays of numbers, or tuples of them, which
// packedArrays reads. The driver itself reads each element of an array by reflection, which takes
// much longer.
func packed(arrays ...string) string {
	return "formatRow('RowBinary', " + strings.Join(arrays, ", ") + ")"
}

// packedArrays decodes a value of an expression of packed, one array after the other.
type packedArrays struct {
	rest []byte
	err  error // the value is too short
}

// nextArray returns the next array. T must be the type of the elements on the server.
func nextArray[T uint16 | uint64 | int32 | float64](p *packedArrays) []T {
	length, size := binary.Uvarint(p.rest)
	if size <= 0 || length > uint64(len(p.rest)) {
		p.err = errPacked
		return nil
	}
	array := make([]T, length)
	read, err := binary.Decode(p.rest[size:], binary.LittleEndian, array)
	if err != nil {
		p.err = errPacked
		return nil
	}
	p.rest = p.rest[size+read:]
	return array
}

// end returns an error if the value was too short, or if something follows the arrays.
func (p *packedArrays) end() error {
	if p.err == nil && len(p.rest) > 0 {
		return errPacked
	}
	return p.err
}

var errPacked = errors.New("packed arrays have the wrong length")

// maxTogetherStatements is the maximum number of concurrent statements of one query.
const maxTogetherStatements = 4

// together calls functions at the same time, at most maxTogetherStatements. After the first error,
// which it returns, ctx ends for the others.
func together(ctx context.Context, all ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	var once sync.Once
	var first error
	slots := make(chan struct{}, maxTogetherStatements)
	for _, one := range all {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			if err := one(ctx); err != nil {
				once.Do(func() { first = err })
				cancel()
			}
		})
	}
	wait.Wait()
	return first
}

// number returns the number that a statement selects.
func (e *exporter) number(ctx context.Context, sql string) (n uint64, err error) {
	err = e.eachRow(ctx, sql, func(r db.Rows) error { return r.Scan(&n) })
	return n, err
}

// shards records which shards of the cluster respond. A shard does not respond if none of its
// replicas does. Statements leave such shards out, and the result is partial, unless they run with
// wholeCluster.
type shards struct {
	mu      sync.Mutex
	checked time.Time // before the shards were asked
	missing tracestore.Reasons
}

// missingShards returns which shards do not respond. Callers must have read before. Concurrent
// calls share one check of the shards.
func (e *exporter) missingShards(ctx context.Context) tracestore.Reasons {
	if !e.cfg.Cluster.Sharded || ctx.Err() != nil {
		return nil
	}
	called := time.Now()
	e.shards.mu.Lock()
	defer e.shards.mu.Unlock()
	if !e.shards.checked.Before(called) {
		return e.shards.missing
	}
	now := time.Now()
	missing, err := e.askShards(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return tracestore.Because(tracestore.ReasonUnavailable, "cannot tell which shards responded: "+err.Error())
	}
	e.shards.missing, e.shards.checked = tracestore.Because(tracestore.ReasonUnavailable, missing), now
	return e.shards.missing
}

// wholeCluster returns a context for statements that fail if a shard does not respond, instead of
// leaving it out. The error matches shardMissing.
func wholeCluster(ctx context.Context) context.Context {
	return db.WithSettings(ctx, db.Settings{"skip_unavailable_shards": 0})
}

// shardMissing reports whether err says that no server of a shard responds.
func shardMissing(err error) bool { return db.CodeOf(err) == db.CodeShardMissing }

// askShards queries all shards. Each responds with one row.
func (e *exporter) askShards(ctx context.Context) (missing string, err error) {
	name := where.Text(e.cfg.Cluster.Name)
	known, err := e.number(ctx, "SELECT toUInt64(count(DISTINCT shard_num)) FROM system.clusters WHERE cluster = "+name)
	if err != nil {
		return "", err
	}
	answered, err := e.number(ctx, "SELECT toUInt64(count()) FROM cluster("+name+", system.one)")
	if err != nil || answered >= known {
		return "", err
	}
	return fmt.Sprintf("%s of cluster %s: no server responds", e.silentShards(ctx, name, known, answered), e.cfg.Cluster.Name), nil
}

// silentShards returns the numbers of the shards that do not respond, or only how many if the
// server is too old to tell.
func (e *exporter) silentShards(ctx context.Context, cluster string, known, answered uint64) string {
	numbers := make(map[uint64]bool)
	err := e.eachRow(ctx, "SELECT toUInt64(shardNum()) FROM cluster("+cluster+", system.one)", func(r db.Rows) error {
		var n uint64
		err := r.Scan(&n)
		numbers[n] = true
		return err
	})
	if err != nil {
		return fmt.Sprintf("%d of %d shards", known-answered, known)
	}
	var silent []string
	for n := range known {
		if !numbers[n+1] {
			silent = append(silent, strconv.FormatUint(n+1, 10))
		}
	}
	return "shard " + strings.Join(silent, ", ")
}

// incomplete returns a tracestore.DamagedError if shards do not respond. Callers that have found a
// trace need not call it, because a trace is on one shard.
func (e *exporter) incomplete(ctx context.Context) error {
	if missing := e.missingShards(ctx); !missing.Complete() {
		return &tracestore.DamagedError{Reasons: missing}
	}
	return nil
}

// serverLimit returns which limit of the server ended a statement, or nil if err is another error.
func serverLimit(err error) tracestore.Reasons {
	switch {
	case db.CodeOf(err) == db.CodeMemoryLimit:
		return tracestore.Because(tracestore.ReasonBudget, "stopped at the memory limit of the server; narrow the search or the time range")
	case db.ClassOf(err) != db.Limited:
		return nil
	case db.CodeOf(err) == db.CodeTooManyRows || db.CodeOf(err) == db.CodeTooManyBytes:
		return tracestore.Because(tracestore.ReasonBudget,
			"stopped at the maximum number of rows that a query reads; narrow the search or the time range")
	}
	return tracestore.Because(tracestore.ReasonTime, "stopped at the maximum time of a query; narrow the search or the time range")
}
