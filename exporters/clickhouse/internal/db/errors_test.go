package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/tracing-backend/tracing/pipeline"
)

func TestClasses(t *testing.T) {
	exception := func(code int32) error { return &clickhouse.Exception{Code: code, Message: "reason"} }
	for _, c := range []struct {
		err   error
		class Class
		hint  string
	}{
		{exception(252), Overloaded, "larger batches"},
		{exception(241), Overloaded, "max_server_memory_usage"},
		{exception(202), Overloaded, "max_inserts"},
		{exception(159), Limited, ""},
		{exception(160), Limited, ""},
		{exception(209), Unreachable, ""},
		{exception(210), Unreachable, ""},
		{exception(242), Unreachable, "coordination service"},
		{exception(319), Unreachable, ""},
		{exception(999), Unreachable, "coordination service"},
		{exception(225), Unreachable, "coordination service"},
		{exception(285), Unreachable, "insert_quorum"},
		{exception(60), Misconfigured, "schema check"},
		{exception(47), Misconfigured, "schema check"},
		{exception(16), Misconfigured, "schema check"},
		{exception(53), Misconfigured, "schema check"},
		{exception(516), Misconfigured, "password"},
		{exception(497), Misconfigured, "grant"},
		{&columnError{errors.New("column has type Int8 instead of Int64")}, Misconfigured, "schema check"},
		{exception(131), BadData, ""},
		{exception(9999), Unknown, ""},
		{io.ErrUnexpectedEOF, Unreachable, ""},
		{&dialError{errors.New("connection refused")}, Unreachable, ""},
		{fmt.Errorf("handshake: %w", io.ErrUnexpectedEOF), Unreachable, "9440"},
		{errors.New("failed to query server hello: malformed HTTP status code"), Unknown, "9440"},
		{&clickhouse.HTTPError{StatusCode: 502, Err: errors.New("bad gateway")}, Unreachable, ""},
		{&clickhouse.HTTPError{StatusCode: 404, Err: exception(60)}, Misconfigured, "schema check"},
		{clickhouse.ErrAcquireConnTimeout, Overloaded, "max_connections"},
	} {
		err := wrap(context.Background(), "ch1:9000", "spans", c.err)
		if got := ClassOf(err); got != c.class {
			t.Errorf("%v: class %s, want %s", c.err, got, c.class)
		}
		if got := pipeline.IsPermanent(err); got != (c.class == BadData) {
			t.Errorf("%v: permanent is %t", c.err, got)
		}
		if text := err.Error(); !strings.HasPrefix(text, "clickhouse ch1:9000: table spans: ") || !strings.Contains(text, c.hint) {
			t.Errorf("%v: text is %s", c.err, text)
		}
		if !errors.Is(err, c.err) {
			t.Errorf("%v: the cause is lost", c.err)
		}
	}
}

func TestErrorOfContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := wrap(ctx, "ch1:9000", "", io.EOF); !errors.Is(err, context.Canceled) || ClassOf(err) != Unknown {
		t.Errorf("got %v", err)
	}
}
