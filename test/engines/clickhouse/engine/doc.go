// Package engine runs the current ClickHouse engine for tests: the program chserver as a process of
// its own, with the engine from the npm package chdb, which speaks ClickHouse's HTTP and native
// protocols.
//
// Tests that use it are skipped unless TRACING_ENGINES is 1, which "make test-engines" sets. A
// package that uses it has a TestMain with
//
//	goleak.VerifyTestMain(engine.Tests{M: m})
//
// Results come from the engine. What a real server has in addition is missing: users, TLS,
// clusters, sessions and external tables over HTTP, progress before the end of a statement, and the
// query log. As in a real server, a statement over HTTP goes on when its client leaves unless the
// setting cancel_http_readonly_queries_on_client_close is 1; over the native protocol it ends.
//
// [Shared] returns a server for all tests of the package, [Server.Database] a new database in it.
// Tests that stop or kill the server, or inject a [Fault], use [Start].
package engine
