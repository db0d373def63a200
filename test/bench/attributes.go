package bench

import (
	"fmt"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// The instrumentation scopes, as indexes in Scopes.
const (
	httpScope = iota
	rpcScope
	databaseScope
	cacheScope
	queueScope
	applicationScope
	scopeCount
)

// Scope is an instrumentation scope.
type Scope struct{ Name, Version string }

// Scopes returns the instrumentation scopes. Span.Scope is an index in this list.
func Scopes() []Scope {
	return []Scope{{"instrumentation/http", "0.58.0"}, {"instrumentation/rpc", "0.58.0"}, {"instrumentation/sql", "1.4.2"},
		{"instrumentation/cache", "1.4.2"}, {"instrumentation/queue", "0.9.1"}, {"shop/app", ""}}
}

// Shares in thousandths: of spans that failed, and of the other spans that have events.
const (
	failedShare = 30
	eventShare  = 72
)

// finish sets the fields of span i that do not depend on its position in the trace.
func (b *builder) finish(i, service int, kind int32, name string, scope int) {
	s := &b.spans[i]
	s.Kind, s.Name, s.Scope = kind, name, scope
	p := b.profile(service, s)
	failed := b.IntN(1000) < failedShare
	s.Attributes = make([]otlpdata.KeyValue, 0, maxAttributes)
	s.Attributes = append(s.Attributes, b.instrumentationAttributes(s, service, failed)...)
	for _, n := range p.always {
		s.Attributes = append(s.Attributes, b.extra(n))
	}
	for i, n := range p.sometimes {
		if b.IntN(optionalShares[i]) == 0 {
			s.Attributes = append(s.Attributes, b.extra(n))
		}
	}
	switch {
	case failed:
		b.fail(s, service)
	case b.IntN(1000) < eventShare:
		for range p.events {
			s.Events = append(s.Events, b.event(s))
		}
	}
}

// fail makes s a span that ended in an exception.
func (b *builder) fail(s *Span, service int) {
	s.StatusCode, s.StatusMessage = otlpdata.StatusError, b.services[service].noun+" is not available"
	s.Events = []otlpdata.Event{b.exception(s, service)}
	s.Attributes = append(s.Attributes, text("error.type", s.Events[0].Attributes[0].Value.Str()))
}

func text(key, value string) otlpdata.KeyValue {
	return otlpdata.KeyValue{Key: key, Value: otlpdata.StringValue(value)}
}

func number(key string, value int) otlpdata.KeyValue {
	return otlpdata.KeyValue{Key: key, Value: otlpdata.IntValue(int64(value))}
}

// instrumentationAttributes returns the five attributes that the instrumentation of the span sets.
func (b *builder) instrumentationAttributes(s *Span, service int, failed bool) []otlpdata.KeyValue {
	of := &b.services[service]
	switch s.Scope {
	case httpScope:
		method, route, _ := strings.Cut(s.Name, " ")
		path := strings.ReplaceAll(route, "{id}", fmt.Sprint(100_000+b.IntN(900_000)))
		status := 200
		if failed {
			status = 503
		}
		return []otlpdata.KeyValue{text("http.request.method", method), text("http.route", route), text("url.path", path),
			number("http.response.status_code", status), text("user_agent.original", "Mozilla/5.0 (X11; Linux x86_64) shop/4.2")}
	case rpcScope:
		name, method, _ := strings.Cut(s.Name, "/")
		code := 0
		if failed {
			code = 14
		}
		return []otlpdata.KeyValue{text("rpc.system", "grpc"), text("rpc.service", name), text("rpc.method", method),
			number("rpc.grpc.status_code", code), text("server.address", strings.ToLower(name)+".shop.svc")}
	case databaseScope:
		verb, table, _ := strings.Cut(s.Name, " ")
		return []otlpdata.KeyValue{text("db.system.name", "postgresql"), text("db.namespace", of.name), text("db.operation.name", verb),
			text("db.collection.name", table), text("db.query.text", statement(verb, table))}
	case cacheScope:
		return []otlpdata.KeyValue{text("db.system.name", "redis"), text("server.address", "cache-"+of.name), number("server.port", 6379),
			text("cache.key", fmt.Sprintf("%s:%d", of.noun, b.IntN(100_000))),
			{Key: "cache.hit", Value: otlpdata.BoolValue(b.IntN(4) > 0)}}
	case queueScope:
		verb, topic, _ := strings.Cut(s.Name, " ")
		return []otlpdata.KeyValue{text("messaging.system", "kafka"), text("messaging.operation.name", verb),
			text("messaging.destination.name", topic),
			number("messaging.destination.partition.id", b.IntN(12)), number("messaging.kafka.offset", b.IntN(1<<30))}
	}
	return []otlpdata.KeyValue{text("code.function.name", "shop."+of.noun+".prepare"), text("code.file.path", "/src/"+of.name+"/prepare.go"),
		number("code.line.number", 10+b.IntN(400)), number("thread.id", b.IntN(64)), number("items", b.IntN(50))}
}

func statement(verb, table string) string {
	switch verb {
	case "SELECT":
		return "SELECT id, state, changed_at FROM " + table + " WHERE id = $1"
	case "INSERT":
		return "INSERT INTO " + table + " (id, state) VALUES ($1, $2)"
	}
	return "UPDATE " + table + " SET state = $2 WHERE id = $1"
}

// extraCount is the number of attributes that extra can return.
const extraCount = 10

// maxAttributes is the maximum number of attributes of a span: those of the instrumentation, those
// of the profile (always and sometimes), and the error.
const maxAttributes = 5 + 4 + len(optionalShares) + 1

// extra returns attribute n of those that any span may have, with a random value.
func (b *builder) extra(n int) otlpdata.KeyValue {
	regions := []string{"eu-central-1", "us-east-1", "ap-south-1"}
	switch n {
	case 0:
		return text("enduser.id", fmt.Sprintf("user-%05d", b.IntN(20_000)))
	case 1:
		return text("request.id", fmt.Sprintf("%016x%016x", b.Uint64(), b.Uint64()))
	case 2:
		return text("cloud.region", regions[b.IntN(len(regions))])
	case 3:
		return text("feature_flag.key", fmt.Sprintf("experiment-%d", b.IntN(40)))
	case 4:
		return number("retry.count", b.IntN(3))
	case 5:
		return number("payload.bytes", b.IntN(100_000))
	case 6:
		return otlpdata.KeyValue{Key: "sampled.randomly", Value: otlpdata.BoolValue(b.IntN(2) == 0)}
	case 7:
		return otlpdata.KeyValue{Key: "queue.wait_ms", Value: otlpdata.DoubleValue(float64(b.IntN(100_000)) / 1000)}
	case 8:
		return text("client.address", fmt.Sprintf("10.%d.%d.%d", b.IntN(256), b.IntN(256), b.IntN(256)))
	}
	return text("customer.tier", []string{"basic", "plus", "business"}[b.IntN(3)])
}

// at returns a random time within the span.
func (b *builder) at(s *Span) uint64 { return s.Start + b.Uint64N(s.End-s.Start+1) }

func (b *builder) event(s *Span) otlpdata.Event {
	names := []string{"cache miss", "lock acquired", "retry scheduled", "response started"}
	return otlpdata.Event{Time: b.at(s), Name: names[b.IntN(len(names))],
		Attributes: []otlpdata.KeyValue{number("attempt", b.IntN(5)), text("worker", fmt.Sprintf("worker-%d", b.IntN(16)))}}
}

func (b *builder) exception(s *Span, service int) otlpdata.Event {
	of := &b.services[service]
	types := []string{"TimeoutError", "ConnectionRefused", "ConstraintViolation"}
	typ := types[b.IntN(len(types))]
	trace := fmt.Sprintf("%s: %s is not available\n\tat shop.%s.load(%s.go:%d)\n\tat shop.%s.handle(%s.go:%d)\n"+
		"\tat shop.server.serve(server.go:212)",
		typ, of.noun, of.noun, of.name, b.IntN(400), of.noun, of.name, b.IntN(400))
	return otlpdata.Event{Time: b.at(s), Name: "exception", Attributes: []otlpdata.KeyValue{text("exception.type", typ),
		text("exception.message", of.noun+" is not available"), text("exception.stacktrace", trace)}}
}
