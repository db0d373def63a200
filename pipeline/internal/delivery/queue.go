package delivery

import (
	"context"
	"errors"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// sendingQueue holds batches between an exporter edge and its sender, in memory or on disk. All
// methods but open may be called concurrently.
type sendingQueue interface {
	// open is called once, before every other method but state.
	open() error
	// put adds a batch. It returns when the batch is stored. It returns the errors of
	// capacity.acquire, or an error if the batch could not be stored.
	put(ctx context.Context, b *otlpdata.Batch) error
	// take removes the oldest waiting batch. It waits for one until the queue is closed.
	take() (queued, bool)
	// done releases the capacity of a batch that was taken. Its outcome is known.
	done(queued)
	// close ends put. A queue in memory can still be emptied, a queue on disk keeps waiting
	// batches.
	close()
	// drain removes and returns the batches that would be lost now.
	drain() []queued
	// tight returns a channel that has a value after a batch almost filled the queue or did not
	// fit.
	tight() <-chan struct{}
	state() queueState
}

// queued is a batch of a queue.
type queued struct {
	batch *otlpdata.Batch
	load  load
	since time.Time
	spool any // *spool.Item of a queue on disk
}

// queueState is the state of a queue as shown in metrics.
type queueState struct {
	load
	requests int       // number of waiting batches
	oldest   time.Time // arrival of the oldest waiting batch; zero if there is none
}

// errEvicted is the outcome of batches that are dropped with `overflow: drop_oldest`.
var errEvicted = errors.New("dropped from the full sending queue in favor of newer requests (overflow: drop_oldest)")
