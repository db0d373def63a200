package bench

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Captured reads captured traces: the files *.json.gz of a folder, which hold OTLP/JSON documents.
func Captured(folder string) (all []ptrace.Traces, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json.gz"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("folder %s has no captured traces (*.json.gz)", folder)
	}
	for _, file := range files {
		if all, err = appendCaptured(all, file); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return all, nil
}

func appendCaptured(all []ptrace.Traces, file string) ([]ptrace.Traces, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	for docs := json.NewDecoder(z); ; {
		var doc json.RawMessage
		err := docs.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(doc)
		if err != nil {
			return nil, err
		}
		if td.SpanCount() > 0 { // other documents have logs or metrics
			all = append(all, td)
		}
	}
}
