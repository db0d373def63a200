// Takes orders and sends a trace of each with the OpenTelemetry SDK:
//
//   node shop.js [ORDERS [PAUSE_MS]]
'use strict';

const { SpanKind, SpanStatusCode, isSpanContextValid, trace, TraceFlags } = require('@opentelemetry/api');
const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-proto');
const { defaultResource, resourceFromAttributes } = require('@opentelemetry/resources');
const { JaegerRemoteSampler } = require('@opentelemetry/sampler-jaeger-remote');
const { BatchSpanProcessor, NodeTracerProvider, ParentBasedSampler, TraceIdRatioBasedSampler } = require('@opentelemetry/sdk-trace-node');

const serviceName = 'shop-node';

// The SDK for Node.js does not know the value jaeger_remote. Its arguments are those of other languages:
// endpoint=URL,pollingIntervalMs=N,initialSamplingRate=P.
function remoteSampler() {
  if (process.env.OTEL_TRACES_SAMPLER !== 'jaeger_remote') {
    return undefined; // the SDK reads the variable
  }
  delete process.env.OTEL_TRACES_SAMPLER;
  const args = Object.fromEntries((process.env.OTEL_TRACES_SAMPLER_ARG ?? '').split(',').filter(Boolean)
    .map((a) => [a.slice(0, a.indexOf('=')), a.slice(a.indexOf('=') + 1)]));
  return new ParentBasedSampler({ root: new JaegerRemoteSampler({
    endpoint: args.endpoint ?? 'http://localhost:5778',
    serviceName,
    poolingInterval: Number(args.pollingIntervalMs ?? 60000),
    initialSampler: new TraceIdRatioBasedSampler(Number(args.initialSamplingRate ?? 0.001)),
  }) });
}

// The exporter reads OTEL_EXPORTER_OTLP_ENDPOINT; the default is http://localhost:4318.
const sampler = remoteSampler();
const provider = new NodeTracerProvider({
  resource: defaultResource().merge(resourceFromAttributes({ 'service.name': serviceName, 'service.version': '1.0.0' })),
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  ...(sampler && { sampler }),
});
provider.register();
const tracer = trace.getTracer('shop', '1.0.0');

// takeOrder handles a request of a client.
function takeOrder() {
  const attributes = {
    'http.request.method': 'POST', 'http.route': '/orders', 'order.gift': true, 'order.count': 2, 'order.total': 12.75,
    'order.items': ['book', 'pen'], 'order.quantities': [1, 2], 'order.prices': [9.5, 3.25], 'order.in_stock': [true, false],
  };
  return tracer.startActiveSpan('POST /orders', { kind: SpanKind.SERVER, attributes }, (span) => {
    try {
      insert();
    } catch {
      span.addEvent('retry', { 'retry.attempt': 1 });
    }
    publish();
    span.setAttribute('http.response.status_code', 202);
    span.end();
    return span.spanContext();
  });
}

// insert calls the database, which refuses the statement.
function insert() {
  const attributes = { 'db.system.name': 'postgresql', 'db.query.text': 'INSERT INTO orders VALUES (?, ?)' };
  tracer.startActiveSpan('INSERT orders', { kind: SpanKind.CLIENT, attributes }, (span) => {
    const error = new Error('deadlock detected');
    span.recordException(error);
    span.setStatus({ code: SpanStatusCode.ERROR, message: error.message });
    span.end();
    throw error;
  });
}

// publish sends a message.
function publish() {
  const attributes = { 'messaging.system': 'kafka', 'messaging.destination.name': 'orders', 'messaging.message.body.size': 512 };
  tracer.startActiveSpan('send orders', { kind: SpanKind.PRODUCER, attributes }, (span) => {
    span.setStatus({ code: SpanStatusCode.OK });
    span.end();
  });
}

async function main() {
  const orders = Number(process.argv[2] ?? 1);
  const pause = Number(process.argv[3] ?? 0);
  for (let i = 1; i <= orders; i++) {
    const span = takeOrder();
    const sampled = isSpanContextValid(span) && (span.traceFlags & TraceFlags.SAMPLED) !== 0;
    console.log(`order ${i} trace ${span.traceId} sampled ${sampled}`);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
  await provider.shutdown();
  process.exit(0); // the remote sampler would go on
}

main().catch((error) => {
  console.error(`shop: ${error.message}`);
  process.exit(1);
});
