// Starts traces with the remote sampler of the Jaeger client.
//
//   node sampler.js HOST PORT PATH
//
// Each line of the input is {"operation": name, "traces": number}. For each line the program starts that number of traces and
// prints {"sampled": number, "by": text}: how many of them were sampled, and the sampler tags of the last sampled one.
'use strict';

const [host, port, samplingPath] = process.argv.slice(2);
const { initTracer } = require('jaeger-client');

const tracer = initTracer(
  { serviceName: 'cart', sampler: { type: 'remote', param: 0, host, port: Number(port), samplingPath, refreshIntervalMs: 20 } },
  { reporter: { report() {}, close(done) { if (done) done(); }, setProcess() {} }, logger: { info() {}, error() {} } },
);

function begin(operation) {
  const span = tracer.startSpan(operation);
  const tags = Object.fromEntries(span._tags.map((t) => [t.key, t.value]));
  return span.context().isSampled() && `${tags['sampler.type']} ${tags['sampler.param']}`;
}

const lines = require('readline').createInterface({ input: process.stdin });
lines.on('line', (line) => {
  const { operation, traces } = JSON.parse(line);
  const answer = { sampled: 0, by: '' };
  for (let i = 0; i < traces; i++) {
    const by = begin(operation);
    if (by) {
      answer.sampled++;
      answer.by = by;
    }
  }
  console.log(JSON.stringify(answer));
});
lines.on('close', () => process.exit(0));
