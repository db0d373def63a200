package host

import (
	"io"
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"

	"github.com/tracing-backend/tracing/pipeline/internal/config"
)

// newLogger returns the logger of the process and its level. Lines are JSON objects with level, ts
// (seconds since the Unix epoch), caller, msg and the fields of the line, or the same in the
// console format. No line is dropped by sampling.
func newLogger(c config.Logs, w io.Writer) (*zap.Logger, zap.AtomicLevel, error) {
	level, err := c.ZapLevel()
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
