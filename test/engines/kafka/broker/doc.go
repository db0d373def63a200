// Package broker runs Apache Kafka brokers for tests: Java processes in KRaft mode, each broker and
// controller, with the jars that [Install] downloads from Maven Central into a cache folder. They
// do not sync their logs: what is acknowledged is on several of them.
//
// Tests that need any broker use [Shared], and topics of their own. Those that stop brokers use
// [Start]. The environment variable KAFKA_BROKERS (host:port,...) names brokers for [Shared]
// instead of those from Maven. Without it, tests are skipped unless TRACING_ENGINES is 1, which
// "make test-engines" sets. A package that uses [Shared] has a TestMain with
//
//	goleak.VerifyTestMain(broker.Tests{M: m})
package broker
