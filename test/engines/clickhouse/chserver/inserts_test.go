package main

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
	"github.com/tracing-backend/tracing/test/harness"
)

// createView creates a table t and a view that counts its rows by key in a table v, both with a
// window for deduplication.
func createView(t *testing.T, conn clickhouse.Conn) {
	t.Helper()
	for _, statement := range []string{
		"CREATE TABLE t (k UInt64, s String) ENGINE = MergeTree ORDER BY k SETTINGS non_replicated_deduplication_window = 100",
		`CREATE TABLE v (k UInt64, n UInt64) ENGINE = SummingMergeTree ORDER BY k
			SETTINGS non_replicated_deduplication_window = 100`,
		"CREATE MATERIALIZED VIEW m TO v AS SELECT t.k % 10 AS k, count() AS n FROM t GROUP BY k",
	} {
		check(t, conn.Exec(context.Background(), statement))
	}
}

// insert sends rows rows with a token for deduplication, "" being none.
func insert(conn clickhouse.Conn, rows int, token string) error {
	settings := clickhouse.Settings{"deduplicate_blocks_in_dependent_materialized_views": 1}
	if token != "" {
		settings["insert_deduplication_token"] = token
	}
	b, err := conn.PrepareBatch(clickhouse.Context(context.Background(), clickhouse.WithSettings(settings)), "INSERT INTO t")
	if err != nil {
		return err
	}
	for i := range rows {
		if err := b.Append(uint64(i), token); err != nil {
			return err
		}
	}
	return b.Send()
}

func TestRepeatedInsertsCountOnce(t *testing.T) { eachProtocol(t, testRepeatedInserts) }

func testRepeatedInserts(t *testing.T, p clickhouse.Protocol) {
	conn := connect(t, p)
	createView(t, conn)
	for _, token := range []string{"a", "b", "a", "b", "a"} {
		check(t, insert(conn, 1000, token))
	}
	wantCount(t, conn, 2000, "SELECT count() FROM t")
	wantCount(t, conn, 2000, "SELECT sum(n) FROM v")
}

func TestConcurrentClients(t *testing.T) { eachProtocol(t, testConcurrentClients) }

func testConcurrentClients(t *testing.T, p clickhouse.Protocol) {
	conn := connect(t, p)
	createView(t, conn)
	var clients sync.WaitGroup
	for c := range 6 {
		clients.Go(func() {
			for i := range 5 {
				if err := insert(conn, 100, string(rune('a'+c))+string(rune('0'+i))); err != nil {
					t.Error(err)
				}
				var n uint64
				if err := conn.QueryRow(context.Background(), "SELECT count() FROM t").Scan(&n); err != nil || n < 100 {
					t.Errorf("%d rows, %v", n, err)
				}
			}
		})
	}
	clients.Wait()
	wantCount(t, conn, 3000, "SELECT sum(n) FROM v")
}

func TestCanceledQueriesEnd(t *testing.T) { eachProtocol(t, testCanceledQueries) }

func testCanceledQueries(t *testing.T, p clickhouse.Protocol) {
	conn := connect(t, p)
	ctx, cancel := context.WithCancel(context.Background())
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"cancel_http_readonly_queries_on_client_close": 1}))
	done := make(chan error, 1)
	go func() { done <- conn.Exec(ctx, "SELECT count() FROM system.numbers WHERE sipHash64(number) = 17") }()
	const running = "SELECT count() FROM system.processes WHERE query LIKE '%sipHash64(number) = 17'"
	harness.Poll(t, "start of the query", func() bool { return count(t, conn, running) > 0 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	harness.Poll(t, "end of the query", func() bool { return count(t, conn, running) == 0 })
}

func TestAcknowledgedRowsSurviveKills(t *testing.T) {
	s := engine.Start(t, engine.Options{})
	eachProtocol(t, func(t *testing.T, p clickhouse.Protocol) {
		conn := connectTo(t, s, p, s.Database(t))
		createView(t, conn)
		for i := range uint64(3) {
			check(t, insert(conn, 1000, string(rune('a'+i))))
			s.Kill()
			if err := conn.Ping(context.Background()); err == nil {
				t.Error("a killed server answers")
			}
			s.Restart(t)
			wantCount(t, conn, 1000*(i+1), "SELECT count() FROM t")
			check(t, insert(conn, 1000, string(rune('a'+i))))
			wantCount(t, conn, 1000*(i+1), "SELECT sum(n) FROM v")
		}
	})
}
