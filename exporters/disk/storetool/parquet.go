package storetool

import (
	"bufio"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// Limits of a Parquet file.
const (
	// maxGroupRows and maxGroupBytes limit a row group. Each open file holds one in memory.
	maxGroupRows  = 64 << 10
	maxGroupBytes = 32 << 20
	// maxDictionary limits the dictionary of a column in a row group, in bytes. Columns with more
	// distinct text continue without a dictionary.
	maxDictionary = 1 << 20
	// batchRows and batchBytes limit the rows of one call to the writer.
	batchRows  = 128
	batchBytes = 256 << 10
	// statisticsBytes is the length to which the minimum and maximum of a page are truncated in the
	// column index, which lets readers skip pages.
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
		w := parquet.NewGenericWriter[parquetSpan](out, schema, parquet.Compression(codec),
			parquet.DictionaryMaxBytes(maxDictionary),
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

// flush passes the batch to the writer, which copies it.
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
