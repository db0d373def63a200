package thriftudp

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/internal/translate/zipkin"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// Methods of the service that agents are.
const (
	methodNative = "emitBatch"
	methodZipkin = "emitZipkinBatch"
)

// Formats, as metrics name them.
const (
	formatNative = "tracing"
	formatZipkin = "zipkin"
)

// reasonMethod is the reason of datagrams that call another method.
const reasonMethod = "method"

// unknownMethod is the error of such a datagram.
type unknownMethod string

// Error names the method, or the beginning of a very long one.
func (m unknownMethod) Error() string {
	const longest = 64
	return fmt.Sprintf("Unknown function %.*q", longest, string(m))
}

// listener takes spans from one port.
type listener struct {
	*server.UDP
	set     pipeline.Settings
	port    port
	clients *clients
	// slots are for translations, one for each processor: more at once would not be faster, and would hold memory.
	slots chan struct{}
	next  pipeline.Consumer
}

func newListener(set pipeline.Settings, p port, c *clients, slots chan struct{}, next pipeline.Consumer) (*listener, error) {
	l := &listener{set: set, port: p, clients: c, slots: slots, next: next}
	var err error
	if l.UDP, err = server.NewUDP(set, p.name, p.server, l.take); err != nil {
		return nil, err
	}
	return l, register(set.Metrics, p, l.Stats)
}

// take translates all datagrams that waited, and hands their spans on as one batch for each format: many small datagrams then share the cost
// of an fsync, or of a request to the next hop. What is wrong with one datagram costs its own spans only. Nobody is there to be told when
// spans are not taken; trying again is the business of what comes after, such as a sending queue.
func (l *listener) take(ctx context.Context, d *server.Datagrams) {
	j := joiner{budget: l.set.Budget, meta: otlpdata.Meta{Transport: "udp", Received: l.set.Env.Now()}}
	defer j.release()
	l.translateAll(d, &j)
	for _, parts := range [][]*otlpdata.Batch{j.native, j.zipkin} {
		pipeline.ConsumeJoined(ctx, l.next, parts, func(of []*otlpdata.Batch, err error) {
			if err != nil {
				d.Failed(len(of), err)
			}
		})
	}
}

// translateAll adds what all datagrams say.
func (l *listener) translateAll(d *server.Datagrams, j *joiner) {
	l.slots <- struct{}{}
	defer func() { <-l.slots }()
	defer d.Release()
	for from, data := range d.All() {
		err := j.reserveFor(data)
		if err == nil {
			err = l.translate(data, j)
		}
		if err != nil {
			d.Refuse(from, reasonOf(err), err)
		}
	}
}

// translate adds what one datagram says.
func (l *listener) translate(data []byte, j *joiner) error {
	method, args, err := native.ReadMessage(data, l.port.encoding)
	if err != nil {
		return err
	}
	switch method {
	case methodNative:
		b, err := native.FromEmitBatch(args, l.port.encoding)
		if err != nil {
			return err
		}
		if err := j.add(&j.native, formatNative, b.OTLP); err != nil {
			return err
		}
		l.clients.heard(b.Client)
		return nil
	case methodZipkin:
		otlp, err := zipkin.FromEmitZipkinBatch(args, l.port.encoding)
		if err != nil {
			return err
		}
		return j.add(&j.zipkin, formatZipkin, otlp)
	}
	return unknownMethod(method)
}

// joiner gathers what datagrams say, by format, and what that takes of the budget.
type joiner struct {
	budget *pipeline.Budget
	held   *pipeline.Reservation // nil: nothing yet
	size   int                   // bytes of all parts
	walk   int                   // bytes to walk the worst part; parts are walked one after the other
	meta   otlpdata.Meta

	native, zipkin []*otlpdata.Batch // one for each datagram
}

// add takes an encoded request of one datagram. Without spans there is nothing to hand on.
func (j *joiner) add(parts *[]*otlpdata.Batch, format string, otlp []byte) error {
	j.meta.Format = format
	b, err := otlpdata.FromOTLP(otlp, j.meta, otlpdata.Limits{})
	if err != nil || b.Len() == 0 {
		return err
	}
	size, walk := j.size+b.Size(), max(j.walk, b.WalkMemory())
	if err := j.reserve(int64(size + walk)); err != nil {
		return err
	}
	j.size, j.walk = size, walk
	*parts = append(*parts, b)
	return nil
}

// reserveFor takes what the translation of a datagram can make at most.
func (j *joiner) reserveFor(data []byte) error {
	const growth = max(native.Growth, zipkin.EmitZipkinGrowth)
	return j.reserve(int64(j.size + j.walk + growth*len(data) + 64))
}

func (j *joiner) reserve(n int64) (err error) {
	if j.held == nil {
		j.held, err = j.budget.Reserve(n)
		return err
	}
	return j.held.Resize(n)
}

func (j *joiner) release() {
	if j.held != nil {
		j.held.Release()
	}
}

// reasonOf says why a datagram is refused.
func reasonOf(err error) string {
	var method unknownMethod
	var limit *otlpdata.LimitError
	switch {
	case errors.As(err, &method):
		return reasonMethod
	case errors.Is(err, pipeline.ErrOverBudget):
		return server.ReasonOverBudget
	case errors.As(err, &limit):
		return server.ReasonTooLarge
	}
	return server.ReasonUndecodable
}
