package compare

import (
	"context"
	"embed"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// subject is a schema with the code that writes and reads it.
type subject interface {
	// write stores a batch and returns when the server has acknowledged it.
	write(ctx context.Context, b batch) error
	// trace returns the number of spans of a trace.
	trace(ctx context.Context, id otlpdata.TraceID) (spans int, err error)
	// newest returns the ids of the newest traces with a span of a service.
	newest(ctx context.Context, q search) ([]otlpdata.TraceID, error)
	// summaries returns the number of traces that newest finds, and reads a summary of each.
	summaries(ctx context.Context, q search) (traces int, err error)
	// red returns the calls of a service within a window, and reads a point for each minute.
	red(ctx context.Context, q search) (calls uint64, err error)
	// heatmap returns the spans of a service within a window, and reads their number for each
	// minute and duration.
	heatmap(ctx context.Context, q search) (spans uint64, err error)
}

// batch is what one insert stores, in the form in which each program has it at that time.
type batch struct {
	own  *otlpdata.Batch
	otel ptrace.Traces
}

// search selects spans of a service, or with a value of the attribute enduser.id.
type search struct {
	service, user string
	from, to      time.Time
	limit         int
}

// errNone is the error of a query that a schema has no statement for.
var errNone = fmt.Errorf("no such query")

//go:embed testdata/*.sql
var schemas embed.FS

// server is a database of an engine.
type server struct {
	driver.Conn
	addr, database string
}

func connect(tb testing.TB, addr, database string) *server {
	tb.Helper()
	conn, err := clickhouse.Open(&clickhouse.Options{Addr: []string{addr}, Protocol: clickhouse.HTTP,
		Auth:        clickhouse.Auth{Database: database, Username: "default"},
		Compression: &clickhouse.Compression{Method: clickhouse.CompressionLZ4}, ReadTimeout: 10 * time.Minute})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close() }) //nolint:errcheck // the test has ended
	return &server{conn, addr, database}
}

// create runs the statements of a file.
func (s *server) create(tb testing.TB, file string) {
	tb.Helper()
	text, err := schemas.ReadFile("testdata/" + file)
	if err != nil {
		tb.Fatal(err)
	}
	for statement := range strings.SplitSeq(string(text), ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if err := s.Exec(tb.Context(), statement); err != nil {
			tb.Fatalf("%s: %v", statement, err)
		}
	}
}

// all reads a result to its end, and calls each after the scan of a row.
func all(rows driver.Rows, err error, each func() error, dest ...any) error {
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // read to the end, or an error is returned
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		if err := each(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// ids reads a result of trace ids in hexadecimal.
func ids(rows driver.Rows, err error) (found []otlpdata.TraceID, _ error) {
	var text string
	err = all(rows, err, func() error {
		var id otlpdata.TraceID
		if n, err := hex.Decode(id[:], []byte(text)); err != nil || n != len(id) {
			return fmt.Errorf("trace id %q", text)
		}
		found = append(found, id)
		return nil
	}, &text)
	return found, err
}
