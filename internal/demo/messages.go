package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
)

// topic is where checkout publishes orders.
const topic = "orders"

const (
	partitions = 4
	// mailEvery is the number of seconds between two batches of mails.
	mailEvery = 2
	// mailBatch is the maximum number of mails in a batch, which takes less than lag.
	mailBatch = 50
)

// message is an order in the topic.
type message struct {
	id      string
	headers propagation.MapCarrier
	at      time.Time
}

// publish sends an order to the topic. Shipping handles each message, in the same trace;
// notification handles batches of them, whose spans have links to the traces.
func (o *operation) publish(id string) {
	attributes := append(messaging("send", semconv.MessagingOperationTypeSend), semconv.MessagingMessageID(id))
	var m message
	o.step("send "+topic, trace.SpanKindProducer, attributes, func(p *operation) {
		m = message{id: id, headers: propagation.MapCarrier{}}
		propagator.Inject(p.ctx, m.headers)
		p.wait(3 * time.Millisecond)
		m.at = p.now
	})
	o.ship(m)
	o.shop.mails = append(o.shop.mails, m)
}

// messaging returns the attributes of an operation on the topic.
func messaging(name string, kind attribute.KeyValue) []attribute.KeyValue {
	return []attribute.KeyValue{semconv.MessagingSystemKafka, semconv.MessagingDestinationName(topic), semconv.MessagingOperationName(name),
		kind, semconv.ServerAddress(brokerHost), semconv.ServerPort(9092)}
}

// ship prepares the parcel of an order.
func (o *operation) ship(m message) {
	ctx := propagator.Extract(context.Background(), m.headers)
	at := m.at.Add(o.about(20 * time.Millisecond))
	attributes := append(messaging("process", semconv.MessagingOperationTypeProcess), semconv.MessagingMessageID(m.id),
		semconv.MessagingConsumerGroupName(shipping), semconv.MessagingDestinationPartitionID(fmt.Sprint(o.random.IntN(partitions))))
	s := o.start(ctx, o.shop.pick(shipping, o.request, at), at, "process "+topic, trace.SpanKindConsumer, attributes)
	s.sql("INSERT", "parcels", "INSERT INTO parcels (order_id, carrier) VALUES ($1, $2)", 5*time.Millisecond)
	err := s.external("POST", carrierHost, "/labels", "parcels", 0, func(o *operation) error {
		o.wait(90 * time.Millisecond)
		return nil
	})
	s.end(err)
}

// mail sends the mails for the orders in the topic at a time.
func (s *Shop) mail(at time.Time, random *rand.Rand) {
	var due, rest []message
	for _, m := range s.mails {
		if m.at.Before(at) {
			due = append(due, m)
		} else {
			rest = append(rest, m)
		}
	}
	s.mails = rest
	for batch := range slices.Chunk(due, mailBatch) {
		s.processOrders(batch, at, random)
	}
}

// processOrders sends the mails for a batch of orders.
func (s *Shop) processOrders(batch []message, at time.Time, random *rand.Rand) {
	links := make([]trace.Link, len(batch))
	for i, m := range batch {
		links[i] = trace.LinkFromContext(propagator.Extract(context.Background(), m.headers), semconv.MessagingMessageID(m.id))
	}
	r := &request{shop: s, random: random}
	attributes := append(messaging("process", semconv.MessagingOperationTypeProcess), semconv.MessagingConsumerGroupName(notification),
		semconv.MessagingBatchMessageCount(len(batch)))
	o := r.start(s.ctx, s.pick(notification, r, at), at, "process "+topic, trace.SpanKindConsumer, attributes, links...)
	for _, m := range batch {
		o.sendMail(m) //nolint:errcheck // the mail is sent later; its span has the error
	}
	o.end(nil)
}

// sendMail sends the mail for an order.
func (o *operation) sendMail(m message) error {
	attributes := []attribute.KeyValue{semconv.ServerAddress(mailHost), semconv.ServerPort(25), semconv.PeerService("smtp"),
		semconv.MessagingMessageID(m.id)}
	return o.child("SMTP send", trace.SpanKindClient, attributes, func(o *operation) error {
		o.wait(25 * time.Millisecond)
		if o.chance(0.005) {
			return &failure{kind: "SMTPError", message: "421 too many connections",
				stack: "SMTPError: 421 too many connections\n  File \"smtp.py\", line 88, in send\n  File \"mails.py\", line 31, in confirm"}
		}
		return nil
	})
}
