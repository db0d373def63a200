package server

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

// Anybody can send bad datagrams as fast as the network goes: a listener writes at most linesPerSecond lines about them in each second.
const linesPerSecond = 10

// logLimit writes error lines, and counts those that are one too many: the next line tells how many there were.
type logLimit struct {
	now func() time.Time

	mu         sync.Mutex
	since      time.Time // when the second began
	written    int       // in it
	suppressed int       // since the last line
}

func (l *logLimit) error(log *zap.Logger, msg string, fields ...zap.Field) {
	suppressed, ok := l.admit()
	if !ok {
		return
	}
	if suppressed > 0 {
		fields = append(fields, zap.Int("suppressed", suppressed))
	}
	log.Error(msg, fields...)
}

// admit reports whether a line may be written now, and how many were not before it.
func (l *logLimit) admit() (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.now(); now.Sub(l.since) >= time.Second || now.Before(l.since) {
		l.since, l.written = now, 0
	}
	if l.written == linesPerSecond {
		l.suppressed++
		return 0, false
	}
	l.written++
	suppressed, l.suppressed = l.suppressed, 0
	return suppressed, true
}
