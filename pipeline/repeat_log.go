package pipeline

import (
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// repeatInterval is the minimum interval between two lines of a [RepeatLog] with the same message.
const repeatInterval = time.Minute

// RepeatLog writes log lines about conditions that last or repeat. It writes the first line with a
// message immediately. After that it writes at most one line with this message per minute: the
// latest, with the number of lines since the previous one in the field `not-logged`.
//
// The message must therefore be constant; put numbers, errors and other variable parts in fields. A
// RepeatLog is safe for concurrent use.
type RepeatLog struct {
	log *zap.Logger
	now func() time.Time

	mu    sync.Mutex
	lines map[string]*repeatedLine // by message
}

// repeatedLine is the state of one message.
type repeatedLine struct {
	written time.Time // when the last line was written
	skipped int       // lines since then
	pending *time.Timer
	caller  zapcore.EntryCaller // of the first line
	level   zapcore.Level       // of the latest line
	fields  []zap.Field         // of the latest line
}

// NewRepeatLog returns a RepeatLog for the component with these settings.
func NewRepeatLog(set Settings) *RepeatLog {
	return &RepeatLog{log: set.Logger.WithOptions(zap.AddCallerSkip(3)), now: set.Env.Now, lines: map[string]*repeatedLine{}}
}

// Info writes or skips a line at the level info.
func (l *RepeatLog) Info(msg string, fields ...zap.Field) { l.add(zap.InfoLevel, msg, fields) }

// Warn writes or skips a line at the level warn.
func (l *RepeatLog) Warn(msg string, fields ...zap.Field) { l.add(zap.WarnLevel, msg, fields) }

// Error writes or skips a line at the level error.
func (l *RepeatLog) Error(msg string, fields ...zap.Field) { l.add(zap.ErrorLevel, msg, fields) }

// End says that a condition is over: a skipped line with this message is not written later, only
// counted in the next one.
func (l *RepeatLog) End(msg string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.lines[msg]; r != nil {
		r.drop()
	}
}

// Close drops all lines that were skipped. A component may call it when it stops.
func (l *RepeatLog) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.lines {
		r.drop()
	}
}

// drop drops the skipped line.
func (r *repeatedLine) drop() {
	if r.pending != nil {
		r.pending.Stop()
		r.pending = nil
	}
}

func (l *RepeatLog) add(level zapcore.Level, msg string, fields []zap.Field) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.lines[msg]
	if r == nil {
		r = &repeatedLine{}
		l.lines[msg] = r
	}
	r.level, r.fields = level, fields
	wait := repeatInterval - l.now().Sub(r.written)
	if r.written.IsZero() || wait <= 0 {
		l.write(msg, r)
		return
	}
	r.skipped++
	if r.pending == nil {
		r.pending = time.AfterFunc(min(wait, repeatInterval), func() { l.writePending(msg, r) })
	}
}

// writePending writes the latest of the skipped lines.
func (l *RepeatLog) writePending(msg string, r *repeatedLine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.pending == nil {
		return // written or ended meanwhile
	}
	r.skipped--
	l.write(msg, r)
}

func (l *RepeatLog) write(msg string, r *repeatedLine) {
	r.drop()
	fields := r.fields
	if r.skipped > 0 {
		fields = append(fields[:len(fields):len(fields)], zap.Int("not-logged", r.skipped))
	}
	if line := l.log.Check(r.level, msg); line != nil {
		if r.written.IsZero() {
			r.caller = line.Caller
		}
		line.Caller = r.caller // a line that is written later has no caller
		line.Write(fields...)
	}
	r.written, r.skipped, r.fields = l.now(), 0, nil
}
