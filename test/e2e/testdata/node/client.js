'use strict';
// Sends one trace with a client library and prints its ids: {"trace": hex, "spans": [hex, ...]}.
//
//   node client.js KIND TARGET START
//
// TARGET is host:port, or a URL if KIND uses HTTP. The first span starts at START, in milliseconds since the epoch, and
// lasts 250 ms. The second one starts 10 ms later and lasts 100 ms. Each has an event 5 ms after its start.

const [kind, target, startText] = process.argv.slice(2);
const start = Number(startText);
const unicode = 'żółw 🐢\n"\\';

// Some libraries omit leading zeros.
function print(trace, ...spans) {
  console.log(JSON.stringify({ trace: trace.padStart(trace.length > 16 ? 32 : 16, '0'), spans: spans.map((s) => s.padStart(16, '0')) }));
}

function jaeger() {
  const opentracing = require('opentracing');
  const { initTracer, SpanContext } = require('jaeger-client');
  const [host, port] = target.split(':');
  const reporter = kind === 'jaeger-http' ? { collectorEndpoint: target } : { agentHost: host, agentPort: Number(port) };
  const problems = [];
  const tracer = initTracer(
    { serviceName: 'shop-node', sampler: { type: 'const', param: 1 }, reporter },
    { traceId128bit: kind === 'jaeger-http', tags: { 'app.version': '1.2.3', 'app.cores': 4 }, logger: { info() {}, error: (m) => problems.push(m) } },
  );
  const root = tracer.startSpan('GET /cart', { startTime: start });
  root.setTag('span.kind', 'server');
  root.setTag('text', unicode);
  root.setTag('count', 7);
  root.setTag('ratio', 0.25);
  root.setTag('cached', true);
  root.log({ event: 'retry', attempt: 2, ok: false }, start + 5);
  const linked = SpanContext.fromString('9:7:0:1');
  const child = tracer.startSpan('SELECT', {
    startTime: start + 10,
    references: [opentracing.childOf(root.context()), opentracing.followsFrom(linked)],
  });
  child.setTag('sampling.priority', 1); // debug
  child.setTag('error', true);
  child.log({ event: 'gave up' }, start + 15);
  child.finish(start + 110);
  root.finish(start + 250);
  print(root.context().traceIdStr, root.context().spanIdStr, child.context().spanIdStr);
  tracer.close(() => {
    if (problems.length > 0) {
      console.error(problems.join('\n'));
      process.exit(1);
    }
  });
}

function zipkin() {
  const zipkin = require('zipkin');
  const { HttpLogger } = require('zipkin-transport-http');
  const v2 = kind === 'zipkin-v2';
  const logger = new HttpLogger({
    endpoint: `${target}/api/${v2 ? 'v2' : 'v1'}/spans`,
    jsonEncoder: v2 ? zipkin.jsonEncoder.JSON_V2 : zipkin.jsonEncoder.JSON_V1,
    httpInterval: 50,
    log: { error: (m) => { console.error(m); process.exit(1); } },
  });
  let answered = 0;
  const send = logger.fetchImplementation;
  logger.fetchImplementation = (url, options) => send(url, options).then((response) => {
    answered += JSON.parse(options.body).length;
    if (answered === 2) setTimeout(() => process.exit(), 0); // after the logger has checked the response
    return response;
  });
  setInterval(() => {}, 1000); // the timers of the library do not keep the process running
  const recorder = new zipkin.BatchRecorder({ logger });
  const { Annotation, TraceId, InetAddress } = zipkin;
  const some = (v) => new zipkin.option.Some(v);
  const root = new TraceId({ traceId: some(hex16() + hex16()), parentId: zipkin.option.None, spanId: hex16(), sampled: some(true) });
  const child = new TraceId({ traceId: some(root.traceId), parentId: some(root.spanId), spanId: hex16(), sampled: some(true), debug: true });
  const record = (traceId, ms, annotation) => recorder.record({ traceId, timestamp: (start + ms) * 1000, annotation });
  for (const [id, ms, end, name] of [[root, 0, 250, 'get /cart'], [child, 10, 110, 'select']]) {
    record(id, ms, new Annotation.ServiceName('shop-zipkin'));
    record(id, ms, new Annotation.LocalAddr({ host: new InetAddress('10.1.2.3'), port: 8080 }));
    record(id, ms, new Annotation.Rpc(name));
    record(id, ms, id === root ? new Annotation.ServerRecv() : new Annotation.ClientSend());
    record(id, ms, new Annotation.BinaryAnnotation('text', unicode));
    record(id, ms + 5, new Annotation.Message('retry'));
    if (id === child) {
      record(id, ms, new Annotation.BinaryAnnotation('error', 'gave up'));
      record(id, ms, new Annotation.ServerAddr({ serviceName: 'db', host: new InetAddress('10.9.8.7'), port: 5432 }));
    }
    record(id, end, id === root ? new Annotation.ServerSend() : new Annotation.ClientRecv());
  }
  print(root.traceId, root.spanId, child.spanId);
}

function hex16() {
  return require('crypto').randomBytes(8).toString('hex');
}

function otel(exporter) {
  const { BasicTracerProvider, SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-base');
  const { resourceFromAttributes } = require('@opentelemetry/resources');
  const api = require('@opentelemetry/api');
  const resource = resourceFromAttributes({ 'service.name': 'shop-otel', 'app.version': '1.2.3' });
  const provider = new BasicTracerProvider({ resource, spanProcessors: [new SimpleSpanProcessor(exporter)] });
  api.diag.setLogger({ error: (m) => { console.error(m); process.exitCode = 1; }, warn() {}, info() {}, debug() {}, verbose() {} });
  const tracer = provider.getTracer('shop/lib', '1.2');
  const at = (ms) => start + ms;
  const linked = { traceId: '000000000000000009f0000000000000', spanId: '0700000000000000', traceFlags: 1 };
  const root = tracer.startSpan('GET /cart', {
    kind: api.SpanKind.SERVER,
    startTime: at(0),
    attributes: { text: unicode, count: 7, ratio: 0.25, cached: true, list: ['a', 'b'] },
  });
  root.addEvent('retry', { attempt: 2 }, at(5));
  const child = tracer.startSpan(
    'SELECT',
    { kind: api.SpanKind.CLIENT, startTime: at(10), links: [{ context: linked }] },
    api.trace.setSpan(api.ROOT_CONTEXT, root),
  );
  child.addEvent('gave up', at(15));
  child.setStatus({ code: api.SpanStatusCode.ERROR, message: 'no connection' });
  child.end(at(110));
  root.end(at(250));
  print(root.spanContext().traceId, root.spanContext().spanId, child.spanContext().spanId);
  provider.shutdown();
}

function exporter(name, options) {
  const pkg = require(`@opentelemetry/${name}`);
  return new (pkg.OTLPTraceExporter || pkg.ZipkinExporter || pkg.JaegerExporter)(options);
}

const kinds = {
  'jaeger-udp': jaeger,
  'jaeger-http': jaeger,
  'zipkin-v1': zipkin,
  'zipkin-v2': zipkin,
  'otel-zipkin': () => otel(exporter('exporter-zipkin', { url: `${target}/api/v2/spans` })),
  'otel-jaeger-udp': () => {
    const [host, port] = target.split(':');
    otel(exporter('exporter-jaeger', { host, port: Number(port) }));
  },
  'otel-jaeger-http': () => otel(exporter('exporter-jaeger', { endpoint: target })),
  'otlp-json': () => otel(exporter('exporter-trace-otlp-http', { url: `${target}/v1/traces` })),
  'otlp-json-gzip': () => otel(exporter('exporter-trace-otlp-http', { url: `${target}/v1/traces`, compression: 'gzip' })),
  'otlp-proto': () => otel(exporter('exporter-trace-otlp-proto', { url: `${target}/v1/traces` })),
  'otlp-grpc': () => otel(exporter('exporter-trace-otlp-grpc', { url: `http://${target}` })),
};

kinds[kind]();
