package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
)

// eachProtocol runs a test with both protocols.
func eachProtocol(t *testing.T, test func(t *testing.T, p clickhouse.Protocol)) {
	for _, p := range []clickhouse.Protocol{clickhouse.HTTP, clickhouse.Native} {
		t.Run(p.String(), func(t *testing.T) { test(t, p) })
	}
}

// connect returns a client of the shared server with a database of its own.
func connect(t *testing.T, p clickhouse.Protocol) clickhouse.Conn {
	t.Helper()
	s := engine.Shared(t)
	return connectTo(t, s, p, s.Database(t))
}

func connectTo(t *testing.T, s *engine.Server, p clickhouse.Protocol, database string) clickhouse.Conn {
	t.Helper()
	addr := s.HTTPAddr()
	if p == clickhouse.Native {
		addr = s.NativeAddr()
	}
	conn, err := clickhouse.Open(&clickhouse.Options{
		Addr: []string{addr}, Protocol: p, Auth: clickhouse.Auth{Database: database},
		Compression: &clickhouse.Compression{Method: clickhouse.CompressionLZ4},
	})
	check(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// count returns the number that a query returns.
func count(t *testing.T, conn clickhouse.Conn, query string, args ...any) (n uint64) {
	t.Helper()
	check(t, conn.QueryRow(context.Background(), query, args...).Scan(&n))
	return n
}

// wantCount checks the number that a query returns.
func wantCount(t *testing.T, conn clickhouse.Conn, want uint64, query string, args ...any) {
	t.Helper()
	if n := count(t, conn, query, args...); n != want {
		t.Errorf("%s: %d, want %d", query, n, want)
	}
}

func TestTypes(t *testing.T) { eachProtocol(t, testTypes) }

func testTypes(t *testing.T, p clickhouse.Protocol) {
	conn, ctx := connect(t, p), context.Background()
	check(t, conn.Ping(ctx))
	check(t, conn.Exec(ctx, `CREATE TABLE t (
			id FixedString(16), s LowCardinality(String), m Map(LowCardinality(String), String), a Array(UInt64),
			at DateTime64(9, 'UTC'), k Enum8('x' = 1, 'y' = 2), n Nested(key LowCardinality(String), value Int64),
			f Float64, maybe Nullable(String), latest SimpleAggregateFunction(max, UInt64), twice UInt64 MATERIALIZED 2 * length(a)
		) ENGINE = MergeTree ORDER BY s`))
	b, err := conn.PrepareBatch(ctx, "INSERT INTO t")
	check(t, err)
	at := time.Unix(1, 5).UTC()
	for range 1000 {
		check(t, b.Append("0123456789abcdef", "svc", map[string]string{"a": "b"}, []uint64{1, 1<<64 - 1}, at, "y",
			[]string{"k", "k"}, []int64{-1, 1}, 0.5, nil, uint64(7)))
	}
	check(t, b.Send())
	wantCount(t, conn, 1000, "SELECT count() FROM t WHERE s = ?", "svc")
	wantCount(t, conn, 4000, "SELECT sum(twice) FROM t")

	var id, s, k string
	var m map[string]string
	var a []uint64
	var start time.Time
	var keys []string
	var values []int64
	var f float64
	var maybe *string
	var latest uint64
	check(t, conn.QueryRow(ctx, "SELECT * FROM t LIMIT 1").Scan(&id, &s, &m, &a, &start, &k, &keys, &values, &f, &maybe, &latest))
	got := fmt.Sprintln(id, s, m, a, start, k, keys, values, f, maybe, latest)
	want := fmt.Sprintln("0123456789abcdef", "svc", map[string]string{"a": "b"}, []uint64{1, 1<<64 - 1}, at, "y",
		[]string{"k", "k"}, []int64{-1, 1}, 0.5, maybe, 7)
	if got != want || maybe != nil {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestErrorsHaveCodes(t *testing.T) { eachProtocol(t, testErrorsHaveCodes) }

func testErrorsHaveCodes(t *testing.T, p clickhouse.Protocol) {
	ctx := context.Background()
	conn := connect(t, p)
	codeOf := func(err error) int32 {
		var e *clickhouse.Exception
		if !errors.As(err, &e) {
			t.Fatalf("%v is not an exception", err)
		}
		return e.Code
	}
	_, err := conn.PrepareBatch(ctx, "INSERT INTO missing")
	unknown := clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"nonsense": 1}))
	for _, tc := range []struct {
		what string
		want int32
		err  error
	}{
		{"unknown table", 60, conn.Exec(ctx, "SELECT * FROM missing")},
		{"insert into unknown table", 60, err},
		{"syntax", 62, conn.Exec(ctx, "SELECT FROM WHERE")},
		{"unknown column", 47, conn.QueryRow(ctx, "SELECT missing FROM system.one").Err()},
		{"unknown setting", 115, conn.Exec(unknown, "SELECT 1")},
		{"unknown database", 81, connectTo(t, engine.Shared(t), p, "missing").Ping(ctx)},
	} {
		if code := codeOf(tc.err); code != tc.want {
			t.Errorf("%s: code %d, want %d: %v", tc.what, code, tc.want, tc.err)
		}
	}
	check(t, conn.Ping(ctx))
}

func TestParameters(t *testing.T) { eachProtocol(t, testParameters) }

func testParameters(t *testing.T, p clickhouse.Protocol) {
	conn := connect(t, p)
	const text = "it's a \"line\""
	params := clickhouse.WithParameters(clickhouse.Parameters{"text": text, "list": "['a','b']"})
	ctx := clickhouse.Context(context.Background(), params)
	var got string
	var list []string
	check(t, conn.QueryRow(ctx, "SELECT {text:String}, {list:Array(String)}").Scan(&got, &list))
	if got != text || fmt.Sprint(list) != "[a b]" {
		t.Errorf("%q %q", got, list)
	}
	check(t, conn.QueryRow(context.Background(), "SELECT ?", "a\\b\t'c'\x00\n").Scan(&got))
	if got != "a\\b\t'c'\x00\n" {
		t.Errorf("%q", got)
	}
}

func TestSettingsApplyToOneQuery(t *testing.T) { eachProtocol(t, testSettings) }

func testSettings(t *testing.T, p clickhouse.Protocol) {
	conn := connect(t, p)
	ctx := clickhouse.Context(context.Background(), clickhouse.WithSettings(clickhouse.Settings{"max_result_rows": 10, "readonly": 1}))
	if err := conn.Exec(ctx, "SELECT number FROM numbers(11)"); err == nil {
		t.Error("the setting did not apply")
	}
	wantCount(t, conn, 0, "SELECT toUInt64(getSetting('max_result_rows'))")
	check(t, conn.Exec(context.Background(), "CREATE TABLE t (a UInt8) ENGINE = MergeTree ORDER BY a"))
}

func TestColumnsOfAnEmptyResult(t *testing.T) {
	rows, err := connect(t, clickhouse.Native).Query(context.Background(), "SELECT 1 AS a, 'x' AS b WHERE 0")
	check(t, err)
	if rows.Next() || fmt.Sprint(rows.Columns()) != "[a b]" {
		t.Error(rows.Columns())
	}
	check(t, rows.Close())
}

func TestBigResults(t *testing.T) { eachProtocol(t, testBigResults) }

func testBigResults(t *testing.T, p clickhouse.Protocol) {
	conn, ctx := connect(t, p), context.Background()
	check(t, conn.Exec(ctx, "CREATE TABLE t (n UInt64, s String) ENGINE = MergeTree ORDER BY n"))
	const total = 300_000
	b, err := conn.PrepareBatch(ctx, "INSERT INTO t (s, n)")
	check(t, err)
	for i := range total {
		check(t, b.Append(fmt.Sprintf("row %090d", i), uint64(i)))
	}
	check(t, b.Send())
	rows, err := conn.Query(ctx, "SELECT n, s FROM t ORDER BY n")
	check(t, err)
	defer rows.Close()
	var n, seen uint64
	var s string
	for ; rows.Next(); seen++ {
		check(t, rows.Scan(&n, &s))
		if n != seen || s != fmt.Sprintf("row %090d", n) {
			t.Fatalf("row %d: %d %s", seen, n, s)
		}
	}
	if err := rows.Err(); err != nil || seen != total {
		t.Errorf("%d rows, %v", seen, err)
	}
}
