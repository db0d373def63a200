package write

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/exporters/clickhouse"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
)

// unlimited disables the retention.
func unlimited(c *clickhouse.Config, _ *pipeline.Settings) { c.Retention.Spans = 0 }

// Errors of the server are temporary, name the server, the table and what to do, and leave nothing
// that a second attempt counts twice.
func TestServerErrors(t *testing.T) {
	eachProtocol(t, func(f *fixture) {
		e := f.start()
		for i, code := range []int{252, 241, 202, 159, 160, 209, 210, 242, 319, 999, 225, 60, 16, 53, 497, 516} {
			b := spansOf(f, 10, uint64(1+100*i), soon)
			f.server.Inject(f.T, engine.Fault{Match: "^INSERT INTO .*spans", Code: code})
			err := e.Consume(context.Background(), b)
			if err == nil || !pipeline.IsTemporary(err) {
				f.Errorf("code %d: %v", code, err)
			} else if !strings.Contains(err.Error(), "table spans: code ") || !strings.Contains(err.Error(), f.address()) {
				f.Errorf("code %d: %v does not name the server and the table", code, err)
			}
			f.server.Heal(f.T)
			f.must(e, b)
		}
		if got := f.query("SELECT count() FROM {db}.spans"); got != "160" {
			f.Errorf("%s spans, want 160", got)
		}
		if got := f.query("SELECT count() FROM {db}.payload"); got != "160" {
			f.Errorf("%s payloads, want 160", got)
		}
	})
}

// A table that disappears while the exporter runs keeps the spans out and reports the exporter as
// degraded until the table is back.
func TestMissingTable(t *testing.T) {
	eachProtocol(t, func(f *fixture) {
		e, b := f.start(), spansOf(f, 10, 1, soon)
		f.must(e, b)
		e.reports()
		f.query("RENAME TABLE {db}.spans TO {db}.elsewhere")
		b = spansOf(f, 10, 100, soon)
		err := e.Consume(context.Background(), b)
		if err == nil || !pipeline.IsTemporary(err) || !strings.Contains(err.Error(), "schema check") {
			f.Errorf("without a table: %v", err)
		}
		if r := e.reports(); len(r) != 1 || r[0] == nil {
			f.Errorf("reported %v, want an error", r)
		}
		f.query("RENAME TABLE {db}.elsewhere TO {db}.spans")
		f.must(e, b)
		if r := e.reports(); len(r) != 1 || r[0] != nil {
			f.Errorf("reported %v, want nil", r)
		}
	})
}

// A server that refuses connections is left out, and is not tried for each insert.
func TestFailover(t *testing.T) {
	eachProtocol(t, func(f *fixture) {
		const dead = "203.0.113.1:9000"
		attempts := 0
		e := f.start(func(c *clickhouse.Config, s *pipeline.Settings) {
			c.Endpoints = []string{dead, f.address()}
			dial := s.Env.Dial
			s.Env.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				if address == dead {
					attempts++
					return nil, errors.New("connection refused")
				}
				return dial(ctx, network, address)
			}
		})
		for i := range 20 {
			f.must(e, spansOf(f, 10, uint64(1+100*i), soon))
		}
		if got := f.query("SELECT count() FROM {db}.spans"); got != "200" {
			f.Errorf("%s spans, want 200", got)
		}
		if attempts < 1 || attempts > 10 {
			f.Errorf("%d attempts to reach the server that is down", attempts)
		}
	})
}
