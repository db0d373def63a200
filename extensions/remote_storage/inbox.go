package remotestorage

import (
	"errors"
	"sync"

	"google.golang.org/grpc"

	"github.com/tracing-backend/tracing/pipeline/server"
)

// Spans of a stream that come while the store is busy with those before are stored together, within these bounds. What waits is the latest
// message, which is in the call's share of the budget, and less than inboxBytes besides.
const (
	inboxSpans = 1000
	inboxBytes = 256 << 10
)

var errStopped = errors.New("nobody takes the spans")

// inbox is the messages of a stream that were received and not taken. One goroutine receives, another one takes.
type inbox struct {
	mu       sync.Mutex
	changed  sync.Cond
	messages [][]byte
	size     int   // bytes
	ended    error // why nothing more comes; nil while it may
}

func newInbox() *inbox {
	i := &inbox{}
	i.changed.L = &i.mu
	return i
}

// receive receives until the client ends the stream, which is io.EOF, or something else does.
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

// put waits for room. It returns false when nobody takes any more.
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

// take waits for messages and returns all that there are: none at the end.
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

// stop is called by who takes when it takes no more.
func (i *inbox) stop() { i.end(errStopped) }
