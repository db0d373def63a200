package storetool

import (
	"bufio"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// Limits of a Parquet file.
const (
	// maxGroupRows and maxGroupBytes bound a row group, of which one is in memory for each open file.
	maxGroupRows  = 64 << 10
	maxGroupBytes = 32 << 20
	// maxDictionary bounds the dictionary of a column in a row group, in bytes. Columns with more texts go on without.
	maxDictionary = 1 << 20
	// batchRows and batchBytes bound the rows that are given to the writer at once.
	batchRows  = 128
	batchBytes = 256 << 10
	// statisticsBytes is how much of the least and the greatest text of a page is kept for readers to pass over it.
	statisticsBytes = 32
)

// parquetEncoder writes a Parquet file.
type parquetEncoder struct {
	out    *bufio.Writer
	writer *parquet.GenericWriter[parquetSpan]
	row    parquetRow
	batch  []parquet.Row
	bytes  int // of the batch

	groupRows, groupBytes int
}

func parquetFormat() format {
	schema := newParquetSchema()
	codec := &zstd.Codec{Level: zstd.SpeedFastest}
	return format{suffix: ".parquet", open: func(out *bufio.Writer) encoder {
		w := parquet.NewGenericWriter[parquetSpan](out, schema, parquet.Compression(codec), parquet.DictionaryMaxBytes(maxDictionary),
			parquet.ColumnIndexSizeLimit(func([]string) int { return statisticsBytes }), parquet.CreatedBy("tracing", "", ""))
		return &parquetEncoder{out: out, writer: w}
	}}
}

func (e *parquetEncoder) add(r *record) error {
	n := len(e.batch)
	if n < cap(e.batch) {
		e.batch = e.batch[:n+1]
	} else {
		e.batch = append(e.batch, nil)
	}
	var size int
	e.batch[n], size = e.row.append(e.batch[n][:0], r)
	if e.bytes += size; len(e.batch) < batchRows && e.bytes < batchBytes {
		return nil
	}
	return e.flush()
}

// flush gives the batch to the writer, which copies it.
func (e *parquetEncoder) flush() error {
	if _, err := e.writer.WriteRows(e.batch); err != nil {
		return err
	}
	e.groupRows += len(e.batch)
	e.groupBytes += e.bytes
	e.batch, e.bytes = e.batch[:0], 0
	e.row.reset()
	if e.groupRows < maxGroupRows && e.groupBytes < maxGroupBytes {
		return nil
	}
	e.groupRows, e.groupBytes = 0, 0
	return e.writer.Flush()
}

func (e *parquetEncoder) close() error {
	if err := e.flush(); err != nil {
		return err
	}
	if err := e.writer.Close(); err != nil {
		return err
	}
	return e.out.Flush()
}
