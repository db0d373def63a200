// Begins traces with the native library's remote sampler: node sampler.js HOST PORT TRACES TYPE. It waits until a sampler of the type decides, and then writes,
// as JSON, how many of the traces were sampled, and the tags that say what decided.
'use strict';

const [host, port, traces, type] = process.argv.slice(2);
const { initTracer } = require('jaeger-client');

const tracer = initTracer(
  { serviceName: 'cart', sampler: { type: 'remote', param: 0, host, port: Number(port), refreshIntervalMs: 20 } },
  { reporter: { report() {}, close(done) { if (done) done(); }, setProcess() {} }, logger: { info() {}, error() {} } },
);

function begin() {
  const span = tracer.startSpan('GET /');
  const tags = Object.fromEntries(span._tags.map((t) => [t.key, t.value]));
  return { sampled: span.context().isSampled(), type: tags['sampler.type'], param: tags['sampler.param'] };
}

const end = Date.now() + 20000;
(function wait() {
  const last = begin();
  if (last.type !== type || !last.sampled) {
    if (Date.now() > end) {
      console.error(`no trace is sampled by ${type}`);
      process.exit(1);
    }
    setTimeout(wait, 1);
    return;
  }
  let sampled = 0;
  for (let i = 0; i < Number(traces); i++) {
    if (begin().sampled) sampled++;
  }
  console.log(JSON.stringify({ sampled, type: last.type, param: last.param }));
  process.exit(0);
})();
