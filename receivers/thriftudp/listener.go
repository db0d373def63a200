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
	"github.com/tracing-backend/tracing/pipeline/server/udp"
)

// Methods of the Thrift service that agents implement.
const (
	methodNative = "emitBatch"
	methodZipkin = "emitZipkinBatch"
)

// Values of the metric label for the format.
const (
	formatNative = "tracing"
	formatZipkin = "zipkin"
)

// reasonMethod is the reason for refusing datagrams that call another method.
const reasonMethod = "method"

// unknownMethod is the error of a datagram that calls another method.
type unknownMethod string

// Error returns the text that users of existing agents know, with at most 64 bytes of the method.
func (m unknownMethod) Error() string {
	return fmt.Sprintf("Unknown function %.64q", string(m))
}

// listener receives spans on one port.
type listener struct {
	server  *udp.Server
	set     pipeline.Settings
	port    port
	tenant  string
	clients *clients
	// slots limits concurrent translations to GOMAXPROCS: more would not be faster but would use
	// more memory.
	slots chan struct{}
	next  pipeline.Consumer
}

func newListener(
	set pipeline.Settings, p port, tenant string, c *clients, slots chan struct{}, next pipeline.Consumer,
) (*listener, error) {
	l := &listener{set: set, port: p, tenant: tenant, clients: c, slots: slots, next: next}
	var err error
	if l.server, err = udp.NewServer(set, p.name, p.config, l.handle); err != nil {
		return nil, err
	}
	return l, registerMetrics(set.Metrics, p, l.server.Stats)
}

// handle translates datagrams and passes on one joined batch per format, so that many small
// datagrams share the cost of an fsync or of a request to the next hop. An error in a datagram
// affects only its own spans. Clients get no response, so errors of the pipeline are only logged;
// retries are up to later components, such as a sending queue.
func (l *listener) handle(ctx context.Context, d *udp.Datagrams) {
	j := joiner{budget: l.set.Budget, meta: otlpdata.Meta{Tenant: l.tenant, Transport: "udp", Received: l.set.Env.Now()}}
	defer j.release()
	l.translateAll(d, &j)
	for _, parts := range [][]*otlpdata.Batch{j.native, j.zipkin} {
		pipeline.ConsumeJoined(ctx, l.next, parts, func(failed []*otlpdata.Batch, err error) {
			if err != nil {
				d.Failed(len(failed), err)
			}
		})
	}
}

// translateAll adds the spans of all datagrams to j.
func (l *listener) translateAll(d *udp.Datagrams, j *joiner) {
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

// translate adds the spans of one datagram to j.
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
		if err := j.addRequest(&j.native, formatNative, b.OTLP); err != nil {
			return err
		}
		l.clients.record(b.Client)
		return nil
	case methodZipkin:
		otlp, err := zipkin.FromEmitZipkinBatch(args, l.port.encoding)
		if err != nil {
			return err
		}
		return j.addRequest(&j.zipkin, formatZipkin, otlp)
	}
	return unknownMethod(method)
}

// joiner collects the batches of datagrams by format and charges the budget for them.
type joiner struct {
	budget      *pipeline.Budget
	reservation *pipeline.Reservation // nil before the first reserve
	size        int                   // bytes of all batches
	walkMemory  int                   // maximum WalkMemory of a batch; batches are walked one after the other
	meta        otlpdata.Meta

	native, zipkin []*otlpdata.Batch // one per datagram
}

// addRequest adds the encoded OTLP request of one datagram to batches, unless it has no spans.
func (j *joiner) addRequest(batches *[]*otlpdata.Batch, format string, otlp []byte) error {
	j.meta.Format = format
	b, err := otlpdata.FromOTLP(otlp, j.meta, otlpdata.Limits{})
	if err != nil || b.Len() == 0 {
		return err
	}
	size, walkMemory := j.size+b.Size(), max(j.walkMemory, b.WalkMemory())
	if err := j.reserve(int64(size + walkMemory)); err != nil {
		return err
	}
	j.size, j.walkMemory = size, walkMemory
	*batches = append(*batches, b)
	return nil
}

// reserveFor reserves the maximum size of the translation of a datagram.
func (j *joiner) reserveFor(data []byte) error {
	const growth = max(native.MaxGrowth, zipkin.EmitZipkinGrowth)
	return j.reserve(int64(j.size + j.walkMemory + growth*len(data) + 64))
}

// reserve sets the reservation to n bytes.
func (j *joiner) reserve(n int64) (err error) {
	if j.reservation == nil {
		j.reservation, err = j.budget.Reserve(n)
		return err
	}
	return j.reservation.Resize(n)
}

func (j *joiner) release() {
	if j.reservation != nil {
		j.reservation.Release()
	}
}

// reasonOf returns the reason for refusing a datagram.
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
