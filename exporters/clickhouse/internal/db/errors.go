package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/tracing-backend/tracing/pipeline"
)

// Class says what an error means for the caller.
type Class uint8

// The classes of errors.
const (
	// Unknown errors are temporary.
	Unknown Class = iota
	// Unreachable: no response from the server, or the server cannot reach what it needs. Another
	// server may be able to run the statement.
	Unreachable
	// Overloaded: the server has too much to do, or too little memory or disk space.
	Overloaded
	// Limited: the statement exceeds its own limit of time, rows or memory.
	Limited
	// Misconfigured: tables, settings, the user or its rights do not meet the exporter's needs.
	// Waiting does not help; repairing the configuration does.
	Misconfigured
	// BadData: the server will never accept the rows.
	BadData
)

// Codes of errors of the server that callers distinguish.
const (
	CodeUnknownTable    = 60
	CodeUnknownDatabase = 81
	CodeTooManyRows     = 158
	CodeTimeout         = 159
	CodeMemoryLimit     = 241
	CodeShardMissing    = 279 // the server that runs the statement cannot reach a shard
	CodeTooManyBytes    = 307
)

// classOf returns the class of an error code of the server. The names of the codes are from
// ClickHouse's ErrorCodes.cpp.
func classOf(code int) Class {
	switch code {
	// DNS_ERROR, NO_FREE_CONNECTION, SOCKET_TIMEOUT, NETWORK_ERROR, ALL_CONNECTION_TRIES_FAILED
	case 198, 203, 209, 210, CodeShardMissing,
		// NO_ZOOKEEPER, TABLE_IS_READ_ONLY, UNKNOWN_STATUS_OF_INSERT, KEEPER_EXCEPTION
		225, 242, 319, 999,
		// NO_ACTIVE_REPLICAS, TOO_FEW_LIVE_REPLICAS, UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE,
		// REPLICA_IS_NOT_IN_QUORUM
		254, 285, 286, 289,
		// ABORTED, ALL_REPLICAS_LOST, ALL_REPLICAS_ARE_STALE, TABLE_IS_BEING_RESTARTED
		236, 415, 519, 733:
		return Unreachable
	// QUOTA_EXCEEDED, TOO_MANY_SIMULTANEOUS_QUERIES, CANNOT_SCHEDULE_TASK, DEADLOCK_AVOIDED
	case 201, 202, 439, 473,
		// NOT_ENOUGH_SPACE, TOO_MANY_PARTS, TOO_MANY_MUTATIONS, SERVER_OVERLOADED
		CodeMemoryLimit, 243, 252, 692, 745:
		return Overloaded
	// TOO_SLOW, TOO_MANY_ROWS_OR_BYTES
	case CodeTooManyRows, CodeTimeout, 160, CodeTooManyBytes, 396:
		return Limited
	// NOT_FOUND_COLUMN_IN_BLOCK, NO_SUCH_COLUMN_IN_TABLE, NUMBER_OF_COLUMNS_DOESNT_MATCH
	case 10, 16, 20,
		// UNKNOWN_FUNCTION, UNKNOWN_IDENTIFIER, UNKNOWN_TYPE, TYPE_MISMATCH, UNKNOWN_SETTING
		46, 47, 50, 53, 115, CodeUnknownTable, CodeUnknownDatabase,
		// READONLY, UNKNOWN_USER, WRONG_PASSWORD, REQUIRED_PASSWORD, IP_ADDRESS_NOT_ALLOWED
		164, 192, 193, 194, 195,
		// DATABASE_ACCESS_DENIED, SETTING_CONSTRAINT_VIOLATION, ACCESS_DENIED,
		// AUTHENTICATION_FAILED
		291, 452, 497, 516:
		return Misconfigured
	// INCORRECT_DATA, TOO_LARGE_ARRAY_SIZE, TOO_LARGE_STRING_SIZE
	case 117, 128, 131:
		return BadData
	}
	return Unknown
}

// String returns the name of the class in metrics.
func (c Class) String() string {
	return [...]string{"unknown", "unreachable", "overloaded", "limited", "misconfigured", "bad_data"}[c]
}

// Error is an error of a statement.
type Error struct {
	// Host is the address of the server, or "" if there was none.
	Host string
	// Table is the table of an insert, or "".
	Table string
	// Class says what the error means.
	Class Class
	// Code is the error code of the server, or 0.
	Code int
	// Err is the error of the connection or the server.
	Err error
}

// Error returns the host, the table, what is wrong and what to do.
func (e *Error) Error() string {
	text := "clickhouse"
	if e.Host != "" {
		text += " " + e.Host
	}
	if e.Table != "" {
		text += ": table " + e.Table
	}
	text += ": " + e.reason()
	if h := e.hint(); h != "" {
		text += "; " + h
	}
	return text
}

// reason returns what is wrong without the wrapping of the client.
func (e *Error) reason() string {
	if ex := (*clickhouse.Exception)(nil); errors.As(e.Err, &ex) {
		return fmt.Sprintf("code %d: %s", ex.Code, ex.Message)
	}
	return e.Err.Error()
}

// hint returns what the operator can do, or "".
func (e *Error) hint() string {
	if e.Code == 0 && e.Class == Misconfigured {
		return checkSchema
	}
	if errors.Is(e.Err, clickhouse.ErrAcquireConnTimeout) {
		return "raise max_connections"
	}
	if e.Code == 0 && isGreeting(e.Err) {
		return "check protocol, tls and port: usually native has port 9000, with TLS 9440, and http 8123, with TLS 8443"
	}
	switch e.Code {
	case CodeUnknownTable, CodeUnknownDatabase, 10, 16, 20, 47, 50, 53:
		return checkSchema
	case 115, 452, 164:
		return "check the settings profile of the user"
	case 192, 193, 194, 195, 516:
		return "check username, password and password_file"
	case 291, 497:
		return "grant the user the rights that docs/clickhouse.md lists"
	case 252:
		return "merges do not keep up; send larger batches or add disks or servers"
	case CodeMemoryLimit:
		return "raise max_server_memory_usage or send smaller batches"
	case 243:
		return "free disk space or lower retention::spans"
	case 242, 225, 999:
		return "check the connection of the server to its coordination service"
	case 202, 201:
		return "lower max_inserts, or raise the limits of the server"
	case 285, 286, 289:
		return "start the missing replicas or lower insert_quorum"
	case CodeShardMissing:
		return "start a server of each shard"
	}
	return ""
}

// isGreeting reports whether a connection was made but the peer did not greet like a server of the
// protocol.
func isGreeting(err error) bool {
	if d := (*dialError)(nil); errors.As(err, &d) {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "handshake: ") || strings.Contains(text, "server hello")
}

const checkSchema = `run "tracing clickhouse schema check"`

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// wrap returns an error of a statement with its class, marked so that pipelines and query APIs know
// whether to retry. An error of ctx is returned unchanged.
func wrap(ctx context.Context, host, table string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("clickhouse %s: %w", host, ctx.Err())
	}
	e := &Error{Host: host, Table: table, Err: err, Code: CodeOf(err)}
	local := (*columnError)(nil)
	switch {
	case e.Code != 0:
		e.Class = classOf(e.Code)
	case errors.As(err, &local):
		e.Class = Misconfigured
	case errors.Is(err, clickhouse.ErrAcquireConnTimeout):
		e.Class = Overloaded
	case isNetwork(err):
		e.Class = Unreachable
	}
	return e.marked()
}

// marked returns the error with the mark of its class. Errors that a configuration change can solve
// are temporary: the spans wait in the queue meanwhile.
func (e *Error) marked() error {
	switch e.Class {
	case BadData:
		return pipeline.Permanent(e)
	case Overloaded, Limited:
		return pipeline.Overloaded(e, 0)
	}
	return pipeline.Unavailable(e, 0)
}

// CodeOf returns the error code of the server, or 0.
func CodeOf(err error) int {
	if ex := (*clickhouse.Exception)(nil); errors.As(err, &ex) {
		return int(ex.Code)
	}
	return 0
}

// ClassOf returns the class of an error of this package; Unknown for others.
func ClassOf(err error) Class {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Class
	}
	return Unknown
}

// isNetwork reports whether err says that the connection failed.
func isNetwork(err error) bool {
	for _, known := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, os.ErrDeadlineExceeded, syscall.ECONNRESET,
		syscall.EPIPE, syscall.ECONNREFUSED, context.DeadlineExceeded, clickhouse.ErrAcquireConnNoAddress} {
		if errors.Is(err, known) {
			return true
		}
	}
	if h := (*clickhouse.HTTPError)(nil); errors.As(err, &h) {
		return h.StatusCode >= 500
	}
	if d := (*dialError)(nil); errors.As(err, &d) {
		return true
	}
	n := net.Error(nil)
	return errors.As(err, &n)
}
