package core

import (
	"context"
	"fmt"
	"sync"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// Admission limits the number of concurrent requests to a number of slots and shares the slots
// fairly: a client address, or a tenant, may hold at most as many slots as are free, so that there
// are always some left for others. A single client gets at most half of them. (This is the "dynamic
// threshold" of Choudhury and Hahne, 1998, with which switches share their buffers.) Clients behind
// the same proxy count as one client. Admission is safe for concurrent use.
type Admission struct {
	key   string // of the limit
	limit int

	mu      sync.Mutex
	running int
	held    map[holder]int
}

// holder is a client address or a tenant.
type holder struct{ kind, name string }

// NewAdmission returns an Admission of limit slots. key names the limit in errors.
func NewAdmission(key string, limit int) *Admission {
	return &Admission{key: key, limit: limit, held: map[holder]int{}}
}

// Enter takes a slot for the client of ctx, unless only keep or fewer slots are free. others is the
// number of slots that the client address already held. The caller must call leave. The error is an
// overload that matches ErrBusy.
func (a *Admission) Enter(ctx context.Context, keep int) (leave func(), others int, err error) {
	holders := holdersOf(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	free := a.limit - a.running
	if free <= keep {
		return nil, 0, pipeline.Overloaded(fmt.Errorf("%w: %s is %d", ErrBusy, a.key, a.limit), 0)
	}
	for _, h := range holders {
		if n := a.held[h]; n >= free {
			return nil, 0, pipeline.Overloaded(fmt.Errorf("%w: %s %s already uses %d of %s (%d), and may use as many as are free",
				ErrBusy, h.kind, h.name, n, a.key, a.limit), 0)
		}
		if h.kind == client {
			others = a.held[h]
		}
	}
	a.addHolders(holders, 1)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.addHolders(holders, -1)
	}, others, nil
}

// Running returns the number of slots in use.
func (a *Admission) Running() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.running
}

func (a *Admission) addHolders(holders []holder, n int) {
	a.running += n
	for _, h := range holders {
		if a.held[h] += n; a.held[h] == 0 {
			delete(a.held, h)
		}
	}
}

const client = "client"

// holdersOf returns the client address and the tenant whose shares a request counts toward.
// Requests without an address, for example over Unix sockets, and requests of the default tenant
// count only toward the limit.
func holdersOf(ctx context.Context) (holders []holder) {
	if address := server.Client(ctx); address != "" {
		holders = append(holders, holder{client, address})
	}
	if tenant := server.Tenant(ctx); tenant != "" {
		holders = append(holders, holder{"tenant", tenant})
	}
	return holders
}
