package db

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Columns are the columns of a block in ClickHouse's Native format.
type Columns interface {
	// Rows returns the number of rows.
	Rows() int
	// AppendColumn appends the values of column i for a column of the server with the given type,
	// without a state prefix.
	AppendColumn(dst []byte, i int, typ string) ([]byte, error)
}

// FillColumns returns a function for Insert.Fill that inserts whole columns. This is several times
// faster than appending values to a batch.
func FillColumns(c Columns) func(driver.Batch) error {
	return func(b driver.Batch) error {
		f := fillers.Get().(*filler)
		for i, to := range b.Columns() {
			var err error
			if f.buf, err = c.AppendColumn(f.buf[:0], i, string(to.Type())); err != nil {
				return &columnError{err}
			}
			f.from.Reset(f.buf)
			if err := to.Decode(f.reader, c.Rows()); err != nil {
				return fmt.Errorf("column %s: %w", to.Name(), err)
			}
			if n := f.from.Len(); n > 0 {
				return fmt.Errorf("column %s: %d trailing bytes", to.Name(), n)
			}
		}
		f.release()
		return nil
	}
}

// filler holds the memory for one column. The reader reads exactly the bytes of each column, so it
// can continue with the next.
type filler struct {
	buf    []byte
	from   bytes.Reader
	reader *proto.Reader
}

var fillers = sync.Pool{New: func() any {
	f := &filler{}
	f.reader = proto.NewReader(&f.from)
	return f
}}

// release keeps the memory for the next block unless it is unusually large. It is not called after
// an error, because the reader may then hold bytes of the failed column.
func (f *filler) release() {
	const maxKept = 32 << 20
	if cap(f.buf) <= maxKept {
		fillers.Put(f)
	}
}

// columnError is the error of a column whose type does not match the rows.
type columnError struct{ err error }

func (e *columnError) Error() string { return e.err.Error() }
func (e *columnError) Unwrap() error { return e.err }
