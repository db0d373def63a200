package udp

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

// linesPerSecond limits the log lines about bad datagrams, because any host may send them at
// network speed.
const linesPerSecond = 10

// logLimit writes at most linesPerSecond error lines per second. The next line has the number of
// suppressed lines in the field suppressed.
type logLimit struct {
	now func() time.Time

	mu         sync.Mutex
	since      time.Time // start of the current second
	written    int       // lines in the current second
	suppressed int       // lines since the last one written
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

// admit reports whether a line may be written now, and how many lines were suppressed before it.
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
