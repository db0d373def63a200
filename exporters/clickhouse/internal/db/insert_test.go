package db

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
)

// endless is a context whose deadline passes when its channel is closed.
type endless struct {
	context.Context
	ended chan struct{}
}

func (e endless) Done() <-chan struct{} { return e.ended }

func (e endless) Err() error {
	select {
	case <-e.ended:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestInsertDeadline checks that the deadline of an insert says that the server does not answer
// only if the server had enough time.
func TestInsertDeadline(t *testing.T) {
	c := DefaultConfig()
	for _, spent := range []time.Duration{0, c.ConnectTimeout.Std()} {
		now := time.Unix(1000, 0)
		ctx := endless{t.Context(), make(chan struct{})}
		env := pipeline.SystemEnv()
		env.Now = func() time.Time { return now }
		env.Dial = func(dial context.Context, _, _ string) (net.Conn, error) {
			now = now.Add(spent)
			close(ctx.ended)
			<-dial.Done()
			return nil, dial.Err()
		}
		d, err := New(pipeline.Settings{Logger: zap.NewNop(), Metrics: prometheus.NewRegistry(), Env: env}, c, Dialect{})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		err = d.Insert(ctx, Insert{Table: "spans"})
		down := len(d.Down()) == 1
		if blamed := ClassOf(err) == Unreachable; !errors.Is(err, context.DeadlineExceeded) || blamed != (spent > 0) || down != blamed {
			t.Errorf("after %v: %v, down is %t", spent, err, down)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}
