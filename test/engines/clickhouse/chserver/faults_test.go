package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
)

func TestFaults(t *testing.T) { eachProtocol(t, testFaults) }

func testFaults(t *testing.T, p clickhouse.Protocol) {
	s := engine.Shared(t)
	t.Cleanup(func() { s.Heal(t) })
	conn := connect(t, p)
	createView(t, conn)
	before := s.FaultsHit(t)
	var e *clickhouse.Exception

	s.Inject(t, engine.Fault{Code: 252, Count: 2})
	for range 2 {
		if err := insert(conn, 10, "a"); !errors.As(err, &e) || e.Code != 252 {
			t.Errorf("%v, want code 252", err)
		}
	}
	wantCount(t, conn, 0, "SELECT count() FROM t")

	s.Inject(t, engine.Fault{Cut: true})
	if err := insert(conn, 10, "a"); err == nil {
		t.Error("no error before the insert")
	}
	wantCount(t, conn, 0, "SELECT count() FROM t")

	s.Inject(t, engine.Fault{Cut: true, After: true, Delay: time.Millisecond})
	if err := insert(conn, 10, "a"); err == nil {
		t.Error("no error after the insert")
	}
	wantCount(t, conn, 10, "SELECT count() FROM t")
	check(t, insert(conn, 10, "a"))
	wantCount(t, conn, 10, "SELECT sum(n) FROM v")

	s.Inject(t, engine.Fault{Match: "FROM system.one", Code: 159})
	if err := conn.Exec(context.Background(), "SELECT * FROM system.one"); !errors.As(err, &e) || e.Code != 159 {
		t.Errorf("%v, want code 159", err)
	}
	if hits := s.FaultsHit(t) - before; hits != 5 {
		t.Errorf("%d faults hit", hits)
	}
}

func TestPausedServerDoesNotAnswer(t *testing.T) {
	s := engine.Start(t, engine.Options{})
	conn := connectTo(t, s, clickhouse.Native, "default")
	check(t, conn.Ping(context.Background()))
	s.Pause(t)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := conn.Ping(ctx); err == nil {
		t.Error("a paused server answers")
	}
	s.Resume(t)
	check(t, conn.Ping(context.Background()))
}
