package main

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// library holds the functions of libchdb.so that the server calls. Connections and results are
// pointers into the memory of the library.
type library struct {
	setSignalHandlers func(enabled int32)
	connect           func(argc int32, argv unsafe.Pointer) uintptr
	closeConn         func(conn uintptr)
	query             func(conn uintptr, query unsafe.Pointer, queryLen uint64, format unsafe.Pointer, formatLen uint64,
		names, nameLens, values, valueLens unsafe.Pointer, count uint64) uintptr
	insertStream  func(conn uintptr, query unsafe.Pointer, queryLen uint64, format unsafe.Pointer, formatLen uint64) uintptr
	streamAppend  func(stream uintptr, data unsafe.Pointer, size uint64) int32
	streamDone    func(stream uintptr) uintptr
	streamCancel  func(stream uintptr)
	streamError   func(stream uintptr) uintptr
	destroyStream func(stream uintptr)
	destroyResult func(result uintptr)
	resultBuffer  func(result uintptr) uintptr
	resultLength  func(result uintptr) uint64
	resultError   func(result uintptr) uintptr
	resultElapsed func(result uintptr) float64
	rowsRead      func(result uintptr) uint64
	bytesRead     func(result uintptr) uint64
	rowsWritten   func(result uintptr) uint64
	bytesWritten  func(result uintptr) uint64
}

// openLibrary loads libchdb.so. The library leaves the handlers of signals to the Go runtime.
func openLibrary(path string) (*library, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", path, err)
	}
	l := &library{}
	for name, f := range map[string]any{
		"chdb_set_signal_handlers_enabled": &l.setSignalHandlers,
		"chdb_connect":                     &l.connect,
		"chdb_close_conn":                  &l.closeConn,
		"chdb_query_with_params_n":         &l.query,
		"chdb_stream_insert_n":             &l.insertStream,
		"chdb_stream_append":               &l.streamAppend,
		"chdb_stream_done":                 &l.streamDone,
		"chdb_stream_cancel_insert":        &l.streamCancel,
		"chdb_stream_insert_error":         &l.streamError,
		"chdb_destroy_insert_stream":       &l.destroyStream,
		"chdb_destroy_query_result":        &l.destroyResult,
		"chdb_result_buffer":               &l.resultBuffer,
		"chdb_result_length":               &l.resultLength,
		"chdb_result_error":                &l.resultError,
		"chdb_result_elapsed":              &l.resultElapsed,
		"chdb_result_storage_rows_read":    &l.rowsRead,
		"chdb_result_storage_bytes_read":   &l.bytesRead,
		"chdb_result_rows_written":         &l.rowsWritten,
		"chdb_result_bytes_written":        &l.bytesWritten,
	} {
		if _, err := purego.Dlsym(handle, name); err != nil {
			return nil, fmt.Errorf("%s has no function %s: %w", path, name, err)
		}
		purego.RegisterLibFunc(f, handle, name)
	}
	l.setSignalHandlers(0)
	return l, nil
}

// session is one connection to the engine, with its own settings and current database. It runs one
// statement at a time.
type session struct {
	lib    *library
	handle uintptr // chdb_connection *
}

// open connects to the engine. The first connection starts it with the given arguments, as of
// clickhouse local.
func (l *library) open(args ...string) (*session, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	argv := make([]unsafe.Pointer, 0, len(args)+2)
	for _, a := range append([]string{"clickhouse"}, args...) {
		text := append([]byte(a), 0)
		pin.Pin(&text[0])
		argv = append(argv, unsafe.Pointer(&text[0]))
	}
	argv = append(argv, nil)
	pin.Pin(&argv[0])
	handle := l.connect(int32(len(args)+1), unsafe.Pointer(&argv[0]))
	if handle == 0 || l.deref(handle) == 0 {
		return nil, errors.New("connecting to the engine: no connection")
	}
	return &session{lib: l, handle: handle}, nil
}

func (s *session) close() {
	s.lib.closeConn(s.handle)
}

// conn is what functions other than chdb_close_conn take.
func (s *session) conn() uintptr { return s.lib.deref(s.handle) }

func (*library) deref(p uintptr) uintptr {
	return **(**uintptr)(unsafe.Pointer(&p))
}

// stats are the counters of an executed statement.
type stats struct {
	elapsed                                        float64 // seconds
	rowsRead, bytesRead, rowsWritten, bytesWritten uint64
}

// result is the output of a statement.
type result struct {
	data []byte
	stats
}

// exception is an error of the engine.
type exception struct {
	code int
	text string // starts with "Code: "
}

func (e *exception) Error() string { return e.text }

// newException parses the code from the text of an error. A text without code is a logical error.
func newException(text string) *exception {
	e := &exception{code: 1002, text: text}
	if i := strings.Index(text, "Code: "); i >= 0 {
		e.text = text[i:]
		fmt.Sscanf(e.text, "Code: %d.", &e.code) //nolint:errcheck // the code stays unknown
	} else {
		e.text = fmt.Sprintf("Code: %d. DB::Exception: %s", e.code, text)
	}
	return e
}

func notSupported(what string) *exception {
	return &exception{48, "Code: 48. DB::Exception: not supported by chserver: " + what + ". (NOT_IMPLEMENTED)"}
}

// query runs a statement and returns its output in a format, unless the statement names another.
func (s *session) query(statement, format string, params map[string]string) (*result, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	n := len(params)
	names, values := make([]unsafe.Pointer, 0, n+1), make([]unsafe.Pointer, 0, n+1)
	nameLens, valueLens := make([]uint64, 0, n+1), make([]uint64, 0, n+1)
	for k, v := range params {
		p, size := pinned(&pin, k)
		names, nameLens = append(names, p), append(nameLens, size)
		p, size = pinned(&pin, v)
		values, valueLens = append(values, p), append(valueLens, size)
	}
	names, values = append(names, nil), append(values, nil)
	nameLens, valueLens = append(nameLens, 0), append(valueLens, 0)
	pin.Pin(&names[0])
	pin.Pin(&values[0])
	text, size := pinned(&pin, statement)
	form, formSize := pinned(&pin, format)
	return s.lib.take(s.lib.query(s.conn(), text, size, form, formSize, unsafe.Pointer(&names[0]),
		unsafe.Pointer(&nameLens[0]), unsafe.Pointer(&values[0]), unsafe.Pointer(&valueLens[0]), uint64(n)))
}

// insert runs an INSERT without FORMAT clause with the data that next returns piece by piece until
// it returns nothing.
func (s *session) insert(statement, format string, next func() ([]byte, error)) (*result, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	text, size := pinned(&pin, statement)
	form, formSize := pinned(&pin, format)
	stream := s.lib.insertStream(s.conn(), text, size, form, formSize)
	defer s.lib.destroyStream(stream)
	if e := s.lib.streamError(stream); e != 0 {
		return nil, newException(cString(e))
	}
	for {
		data, err := next()
		if err != nil {
			s.lib.streamCancel(stream)
			return nil, err
		}
		if len(data) == 0 {
			return s.lib.take(s.lib.streamDone(stream))
		}
		if s.lib.streamAppend(stream, unsafe.Pointer(&data[0]), uint64(len(data))) != 0 {
			if e := s.lib.streamError(stream); e != 0 {
				return nil, newException(cString(e))
			}
			return s.lib.take(s.lib.streamDone(stream))
		}
	}
}

// take copies a result into Go's memory and frees it.
func (l *library) take(r uintptr) (*result, error) {
	if r == 0 {
		return nil, newException("the engine returned no result")
	}
	defer l.destroyResult(r)
	if e := l.resultError(r); e != 0 {
		return nil, newException(cString(e))
	}
	out := &result{stats: stats{
		elapsed: l.resultElapsed(r), rowsRead: l.rowsRead(r), bytesRead: l.bytesRead(r),
		rowsWritten: l.rowsWritten(r), bytesWritten: l.bytesWritten(r),
	}}
	if size := l.resultLength(r); size > 0 {
		out.data = append(out.data, unsafe.Slice(pointer(l.resultBuffer(r)), size)...)
	}
	return out, nil
}

// pinned copies a text to memory that does not move until pin is released.
func pinned(pin *runtime.Pinner, s string) (unsafe.Pointer, uint64) {
	text := append([]byte(s), 0)
	pin.Pin(&text[0])
	return unsafe.Pointer(&text[0]), uint64(len(s))
}

// pointer converts an address in the memory of the library.
func pointer(p uintptr) *byte { return *(**byte)(unsafe.Pointer(&p)) }

func cString(p uintptr) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(pointer(p)), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(pointer(p), n))
}
