package remotestorage

import (
	"errors"
	"sync"

	"google.golang.org/grpc"

	"github.com/tracing-backend/tracing/pipeline/server"
)

// Spans that arrive in a stream while the store is busy are stored together, within these limits.
// The inbox holds less than inboxBytes plus the latest message, which counts toward the budget of
// the call.
const (
	inboxSpans = 1000
	inboxBytes = 256 << 10
)

var errStopped = errors.New("stream handler has ended")

// inbox holds the received messages of a stream until they are taken. One goroutine receives them,
// another one takes them.
type inbox struct {
	mu       sync.Mutex
	changed  sync.Cond
	messages [][]byte
	size     int   // bytes
	ended    error // why no further messages arrive; nil while they may
}

func newInbox() *inbox {
	i := &inbox{}
	i.changed.L = &i.mu
	return i
}

// receive receives messages until the stream ends. The error is io.EOF if the client ended it.
func (i *inbox) receive(stream grpc.ServerStream) {
	for {
		var m server.Raw
		err := stream.RecvMsg(&m)
		if err != nil {
			i.end(err)
			return
		}
		if !i.put(m) {
			return
		}
	}
}

// put adds a message. It blocks while the inbox is full, and returns false if the inbox has ended.
func (i *inbox) put(m []byte) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for i.ended == nil && (len(i.messages) >= inboxSpans || i.size >= inboxBytes) {
		i.changed.Wait()
	}
	if i.ended != nil {
		return false
	}
	i.messages, i.size = append(i.messages, m), i.size+len(m)
	i.changed.Signal()
	return true
}

// take waits for messages and returns all of them, or none if the inbox has ended.
func (i *inbox) take() [][]byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	for i.ended == nil && len(i.messages) == 0 {
		i.changed.Wait()
	}
	all := i.messages
	i.messages, i.size = nil, 0
	i.changed.Signal()
	return all
}

func (i *inbox) end(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended == nil {
		i.ended = err
	}
	i.changed.Signal()
}

// stop ends the inbox; the goroutine that takes messages calls it.
func (i *inbox) stop() { i.end(errStopped) }
