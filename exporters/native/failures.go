package native

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

// logEvery is the least time between two lines about failures in the log: a next hop that is down would fill it.
const logEvery = time.Minute

// failureLog logs messages that could not be sent.
type failureLog struct {
	log *zap.Logger
	now func() time.Time

	mu     sync.Mutex
	latest time.Time // of the last line
	unsaid int       // failures since then
}

func (l *failureLog) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if !l.latest.IsZero() && now.Sub(l.latest) < logEvery {
		l.unsaid++
		return
	}
	l.log.Error("Could not send spans over gRPC", zap.Error(err), zap.Int("failures-not-logged", l.unsaid))
	l.latest, l.unsaid = now, 0
}
