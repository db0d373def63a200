package kafka

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tracing-backend/tracing/pipeline"
)

// logger writes the log of the client library. Warnings and errors, which may repeat for every
// request, appear at most once per minute; everything else is at the level debug.
type logger struct {
	log   *zap.Logger
	lines *pipeline.RepeatLog
}

func newLogger(set pipeline.Settings) *logger {
	return &logger{log: set.Logger, lines: pipeline.NewRepeatLog(set)}
}

// Level implements kgo.Logger.
func (l *logger) Level() kgo.LogLevel {
	if l.log.Core().Enabled(zapcore.DebugLevel) {
		return kgo.LogLevelDebug
	}
	return kgo.LogLevelWarn
}

// Log implements kgo.Logger.
func (l *logger) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	msg = "kafka client: " + msg
	fields := make([]zap.Field, 0, len(keyvals)/2)
	for i := 0; i+1 < len(keyvals); i += 2 {
		fields = append(fields, zap.Any(fmt.Sprint(keyvals[i]), keyvals[i+1]))
	}
	switch level {
	case kgo.LogLevelError:
		l.lines.Error(msg, fields...)
	case kgo.LogLevelWarn:
		l.lines.Warn(msg, fields...)
	default:
		l.log.Debug(msg, fields...)
	}
}
