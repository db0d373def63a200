// Package demo simulates the ten services of a shop, and sends their spans to an installation. It
// implements the command `tracing demo`, and loads the demo data of the web UI.
//
// Each service has instances, and each instance has a tracer provider of the OpenTelemetry SDK with
// its own resource. A call to another service injects the W3C trace context into the headers of a
// request, from which the called instance extracts it. Calls take no real time: durations are
// random numbers, and spans get the times of a virtual clock. So the same code generates the spans
// of the past two hours within seconds, and current spans a few seconds after their time.
//
//	Shop.second ──▶ visit, buy, ... ──▶ operation (a span and its time) ──▶ SDK ──▶ OTLP over HTTP
//
// Once every two hours a bad version of payment runs on half of its instances: see release.
package demo
