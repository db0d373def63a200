// Command arrowcheck reads Parquet files with Apache Arrow and prints their rows as JSON, one per
// line. It is a separate module, so that the program does not depend on Arrow.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	enc := json.NewEncoder(out)
	for _, name := range os.Args[1:] {
		if err := show(enc, name); err != nil {
			log.Fatalf("%s: %v", name, err)
		}
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}

func show(enc *json.Encoder, name string) error {
	f, err := file.OpenParquetFile(name, false)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{BatchSize: 1000}, memory.DefaultAllocator)
	if err != nil {
		return err
	}
	records, err := r.GetRecordReader(context.Background(), nil, nil)
	if err != nil {
		return err
	}
	defer records.Release()
	for records.Next() {
		b := records.RecordBatch()
		text, err := b.MarshalJSON()
		if err != nil {
			return err
		}
		var rows []json.RawMessage
		if err := json.Unmarshal(text, &rows); err != nil {
			return err
		}
		for _, row := range rows {
			if err := enc.Encode(row); err != nil {
				return err
			}
		}
	}
	return records.Err()
}
