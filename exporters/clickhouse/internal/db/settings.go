package db

import (
	"context"
	"maps"
	"math"
	"strconv"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Settings are settings of one statement by name.
type Settings map[string]any

type settingsKey struct{}

// WithSettings returns a context for Select and Exec with settings of the statement, in addition to
// those that ctx has.
func WithSettings(ctx context.Context, s Settings) context.Context {
	all := Settings{}
	maps.Copy(all, settingsOf(ctx))
	maps.Copy(all, s)
	return context.WithValue(ctx, settingsKey{}, all)
}

func settingsOf(ctx context.Context) Settings {
	s, _ := ctx.Value(settingsKey{}).(Settings)
	return s
}

// insertSettings are the settings of an insert of one block with a token. The server stores the
// block as a whole, or not at all if it has already stored a block with the token, both in tables
// and in the targets of views. A sharded table acknowledges when the shards have acknowledged.
func (d *DB) insertSettings(token string) Settings {
	s := Settings{
		"async_insert":               0,
		"insert_deduplicate":         1,
		"insert_deduplication_token": token,
		"deduplicate_blocks_in_dependent_materialized_views": 1,
		"insert_distributed_sync":                            1,
		"max_insert_block_size":                              maxBlockRows,
		"max_partitions_per_insert_block":                    0, // package rows limits the days of a block
	}
	if n, majority := d.Quorum(); majority {
		s["insert_quorum"] = "auto"
	} else if d.cfg.InsertQuorum != "" {
		s["insert_quorum"] = n
	}
	return s
}

// minMajority is the number of replicas from which the quorum "auto" is their majority. The
// majority of two is both, so inserts would stop when one is down.
const minMajority = 3

// SetReplicas sets the minimum number of replicas of a shard. The default is one.
func (d *DB) SetReplicas(n int) { d.replicas.Store(int64(n)) }

// Quorum returns the number of replicas that must have stored an insert before it is acknowledged.
// majority reports that it is the majority of the replicas, instead of a number.
func (d *DB) Quorum() (n int, majority bool) {
	if d.cfg.InsertQuorum == QuorumAuto {
		return 1, d.replicas.Load() >= minMajority
	}
	n, _ = strconv.Atoi(d.cfg.InsertQuorum)
	return max(n, 1), false
}

// maxBlockRows exceeds the number of rows of any insert, so that the server does not divide blocks.
const maxBlockRows = 1 << 24

// maxStatement is the maximum number of bytes of a statement that reads, which may contain long
// literals.
const maxStatement = 64 << 20

// selectSettings limit a statement that reads.
func (d *DB) selectSettings(ctx context.Context) Settings {
	limit := d.cfg.Query.Timeout.Std()
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline))
	}
	s := Settings{
		"max_execution_time": max(1, int(math.Ceil(limit.Seconds()))),
		"max_query_size":     maxStatement,
		// A result without the rows of such a shard is partial, which callers report.
		"skip_unavailable_shards": 1,
	}
	if d.cfg.Query.MaxMemory > 0 {
		s["max_memory_usage"] = int64(d.cfg.Query.MaxMemory)
	}
	if d.cfg.Query.MaxRows > 0 {
		s["max_rows_to_read"] = d.cfg.Query.MaxRows
	}
	if d.cfg.Protocol == HTTP {
		s["cancel_http_readonly_queries_on_client_close"] = 1
	}
	return s
}

// with returns a context with settings of a statement.
func (d *DB) with(ctx context.Context, all Settings) context.Context {
	return clickhouse.Context(ctx, clickhouse.WithSettings(d.dialect.settings(clickhouse.Settings(all))))
}
