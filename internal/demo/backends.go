package demo

import (
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
)

// Hosts of backends, which send no spans.
const (
	cacheHost    = "redis.shop.example"
	databaseHost = "postgres.shop.example"
	brokerHost   = "kafka.shop.example"
	providerHost = "api.northpay.example"
	mailHost     = "smtp.shop.example"
	carrierHost  = "api.parcels.example"
)

// redis runs a command of the cache.
func (o *operation) redis(command, key string) {
	attributes := []attribute.KeyValue{semconv.DBSystemNameRedis, semconv.DBOperationName(command), semconv.DBQueryText(command + " " + key),
		semconv.ServerAddress(cacheHost), semconv.ServerPort(6379), semconv.PeerService("redis")}
	o.step(command, trace.SpanKindClient, attributes, func(c *operation) { c.wait(700 * time.Microsecond) })
}

// shards is the number of shards of the database.
const shards = 8

// sql runs a statement on a table. The last shard is always slow.
func (o *operation) sql(verb, table, text string, median time.Duration) {
	shard := o.random.IntN(shards)
	if shard == shards-1 && table == "stock" {
		median *= 8
	}
	attributes := []attribute.KeyValue{
		semconv.DBSystemNamePostgreSQL, semconv.DBNamespace("shop"), semconv.DBCollectionName(table),
		semconv.DBOperationName(verb), semconv.DBQueryText(text), semconv.ServerAddress(databaseHost), semconv.ServerPort(5432),
		semconv.PeerService("postgres"), attribute.Int("db.shard", shard),
	}
	o.step(verb+" "+table, trace.SpanKindClient, attributes, func(c *operation) { c.wait(median) })
}

// external calls a host that sends no spans. retry is the number of earlier attempts.
func (o *operation) external(method, host, path, peer string, retry int, do handler) error {
	attributes := []attribute.KeyValue{
		semconv.HTTPRequestMethodKey.String(method), semconv.ServerAddress(host), semconv.ServerPort(443),
		semconv.URLFull(fmt.Sprintf("https://%s%s", host, path)), semconv.PeerService(peer),
	}
	if retry > 0 {
		attributes = append(attributes, semconv.HTTPRequestResendCount(retry))
	}
	return o.child(method, trace.SpanKindClient, attributes, func(c *operation) error {
		err := do(c)
		if status := statusOf(err); status != 0 {
			c.span.SetAttributes(semconv.HTTPResponseStatusCode(status))
		}
		return err
	})
}
