// Sends spans at a fixed rate. The requests are encoded once, in Protobuf; only ids and times are replaced, so that sending costs little.

const tracesOfRequest = 50;
const spansOfTrace = 10;

/** Spans of a request. */
export const spansOfRequest = tracesOfRequest * spansOfTrace;

const services = ['frontend', 'checkout', 'cart', 'payment', 'inventory'];

type Bytes = number[];

function varint(n: number): Bytes {
  const out: Bytes = [];
  for (; n >= 128; n = Math.floor(n / 128)) out.push((n % 128) + 128);
  return [...out, n];
}

const field = (number: number, content: Bytes): Bytes => [...varint(number * 8 + 2), ...varint(content.length), ...content];
const fixed = (number: number): Bytes => [...varint(number * 8 + 1), 0, 0, 0, 0, 0, 0, 0, 0];
const text = (s: string): Bytes => [...new TextEncoder().encode(s)];
const attribute = (key: string, value: string): Bytes => [...field(1, text(key)), ...field(2, field(1, text(value)))];

/** Marks of what is replaced: the number of the trace and of the span follow. */
const traceMark = 0xa7;
const spanMark = 0xb5;

function span(trace: number, i: number): Bytes {
  const id = (n: number): Bytes => [spanMark, trace, n, 0, 0, 0, 0, 1];
  return [
    ...field(1, [traceMark, trace, ...new Array<number>(14).fill(0)]), ...field(2, id(i)), ...(i > 0 ? field(4, id(Math.floor((i - 1) / 2))) : []),
    ...field(5, text(`operation ${i}`)), 6 * 8, i % 2 ? 3 : 2, ...fixed(7), ...fixed(8),
    ...field(9, attribute('http.route', `/route/${trace % 7}`)), ...field(9, attribute('user.id', `user ${trace}`)), ...field(9, attribute('region', 'eu-west')),
  ];
}

/** A request, and where its ids and times are. */
interface Request {
  body: Uint8Array<ArrayBuffer>;
  traces: number[];
  times: { at: number; span: number }[];
}

function encode(): Request {
  const bytes: Bytes = [];
  services.forEach((service, s) => {
    const spans: Bytes = [];
    for (let t = 0; t < tracesOfRequest; t++) for (let i = s; i < spansOfTrace; i += services.length) spans.push(...field(2, span(t, i)));
    bytes.push(...field(1, [...field(1, field(1, attribute('service.name', service))), ...field(2, spans)]));
  });
  const body = new Uint8Array(bytes);
  const request: Request = { body, traces: [], times: [] };
  for (let at = 0; at + 18 < body.length; at++) {
    if (body[at] === 10 && body[at + 1] === 16 && body[at + 2] === traceMark) request.traces.push(at + 2);
    if (body[at] === 57 && body[at + 9] === 65) request.times.push({ at: at + 1, span: request.times.length });
  }
  const n = spansOfRequest;
  if (request.traces.length !== n || request.times.length !== n) throw new Error(`${request.traces.length} ids and ${request.times.length} times of ${n} spans`);
  return request;
}

/** Gives the spans new ids, and times before `now`. */
function renew(r: Request, sequence: number, now: number): void {
  const view = new DataView(r.body.buffer);
  for (const at of r.traces) {
    view.setUint32(at + 4, Math.imul(sequence, 0x9e3779b1) >>> 0);
    view.setUint32(at + 8, sequence);
  }
  for (const { at, span } of r.times) {
    const length = 5 + ((span * 7919 + sequence * 31) % 400);
    const start = now - 500 + (span % 50);
    view.setBigUint64(at, BigInt(start) * 1_000_000n, true);
    view.setBigUint64(at + 9, BigInt(start + length) * 1_000_000n, true);
  }
}

/** Outcome of sending: milliseconds until each acknowledgement, and the number of requests that were refused. */
export interface Outcome {
  latencies: number[];
  refused: number;
}

/** Sends `rate` spans per second to an OTLP receiver over HTTP until `signal` is aborted. A request that is late does not delay the next one. */
export async function sendLoad(url: string, rate: number, signal: AbortSignal): Promise<Outcome> {
  const request = encode();
  const outcome: Outcome = { latencies: [], refused: 0 };
  const pending = new Set<Promise<void>>();
  const began = performance.now();
  for (let i = 0; !signal.aborted; i++) {
    const due = began + (i * spansOfRequest * 1000) / rate;
    while (performance.now() < due) await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
    renew(request, i + 1, Date.now());
    const sent = performance.now();
    const one = fetch(`${url}/v1/traces`, { method: 'POST', body: request.body.slice(), headers: { 'content-type': 'application/x-protobuf' } })
      .then(async (r) => {
        await r.arrayBuffer();
        if (r.ok) outcome.latencies.push(performance.now() - sent);
        else outcome.refused++;
      }, () => { outcome.refused++; })
      .finally(() => pending.delete(one));
    pending.add(one);
  }
  await Promise.all(pending);
  return outcome;
}
