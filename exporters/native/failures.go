package native

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

// failureLogInterval is the minimum interval between two logged failures, so that an unavailable
// next hop does not flood the log.
const failureLogInterval = time.Minute

// failureLog logs failed sends at a limited rate.
type failureLog struct {
	log *zap.Logger
	now func() time.Time

	mu         sync.Mutex
	lastLine   time.Time
	suppressed int // failures since lastLine
}

func (l *failureLog) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if !l.lastLine.IsZero() && now.Sub(l.lastLine) < failureLogInterval {
		l.suppressed++
		return
	}
	l.log.Error("Could not send spans over gRPC", zap.Error(err), zap.Int("failures-not-logged", l.suppressed))
	l.lastLine, l.suppressed = now, 0
}
