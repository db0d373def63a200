package pipeline

import (
	"fmt"
	"io"
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"
)

// Messages of the interface specification, section 1 "Debug logging". Users search for them.
const (
	msgBatchProcessed = "Span batch processed by the collector."
	msgSpanWritten    = "Span written to the storage by the collector"
)

func parseLevel(s string) (zapcore.Level, error) {
	switch s {
	case "debug", "info", "warn", "error":
		return zapcore.ParseLevel(s)
	}
	return 0, fmt.Errorf("%q is not a log level; write debug, info, warn or error", s)
}

// newLogger returns the process's logger: JSON objects with level, ts (seconds since the epoch), caller, msg and the fields of the line, or
// the console form of the same, and its level. No line is sampled away.
func newLogger(c logsConfig, w io.Writer) (*zap.Logger, zap.AtomicLevel, error) {
	level, err := parseLevel(c.Level)
	if err != nil {
		return nil, zap.AtomicLevel{}, err
	}
	enc := zap.NewProductionEncoderConfig()
	var encoder zapcore.Encoder
	if c.Encoding == "console" || c.Encoding == "auto" && isTerminal(w) {
		enc.EncodeTime = zapcore.ISO8601TimeEncoder
		encoder = zapcore.NewConsoleEncoder(enc)
	} else {
		encoder = zapcore.NewJSONEncoder(enc)
	}
	sink, atomic := zapcore.Lock(zapcore.AddSync(w)), zap.NewAtomicLevelAt(level)
	return zap.New(zapcore.NewCore(encoder, sink, atomic), zap.AddCaller()), atomic, nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
