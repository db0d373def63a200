// An hour of traces of a shop, for tests and pictures. Payment 2.14.0 appears 35 minutes before the end: some of its
// calls to one provider time out and are retried, and checkout waits.

import type { Program } from './program.ts';
import { sendSpans, type TestSpan } from './spans.ts';

/** Minutes of the data, and minutes before its end at which payment 2.14.0 appears. */
export const minutes = 60;
const deployed = 35;

/** A user with at least one slow and one failed checkout. */
export const unlucky = 'u-1007';

/** A number from 0 to 1, without 1. */
export type Random = () => number;

/** Mulberry32, by Tommy Ettinger (public domain): the same numbers in every run. */
export function seeded(seed: number): Random {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Spans of one trace, all of which begin relative to `start`. */
class Trace {
  readonly spans: TestSpan[] = [];
  readonly id: string;

  constructor(readonly random: Random, private readonly start: number, private readonly updated: boolean) {
    this.id = this.hex(16);
  }

  /** Adds a span and returns it. Times are milliseconds, `at` relative to the start of the trace. */
  add(service: string, name: string, parent: TestSpan | null, at: number, duration: number, rest: Partial<TestSpan> = {}): TestSpan {
    const span: TestSpan = {
      traceID: this.id, spanID: this.hex(8), parentID: parent?.spanID, service, name, start: this.start + at, duration, kind: 'server',
      ...rest, resource: { ...this.resource(service), ...rest.resource },
    };
    this.spans.push(span);
    return span;
  }

  /** A duration that varies around its median. */
  about(median: number): number {
    const normal = Math.sqrt(-2 * Math.log(1 - this.random())) * Math.cos(2 * Math.PI * this.random());
    return median * Math.exp(0.3 * normal);
  }

  pick<T>(...items: T[]): T {
    return items[Math.floor(this.random() * items.length)];
  }

  whole(below: number): number {
    return Math.floor(this.random() * below);
  }

  private hex(bytes: number): string {
    return Array.from({ length: bytes }, () => this.whole(256).toString(16).padStart(2, '0')).join('');
  }

  private resource(service: string): Record<string, string> {
    const version = service === 'payment' ? (this.updated ? '2.14.0' : '2.13.4') : `1.${service.length % 4}.0`;
    const instances = service === 'catalog' && this.updated ? 8 : 6;
    return { 'service.version': version, 'service.instance.id': `${service}-${this.whole(instances)}`, 'host.name': `node-${this.whole(4)}` };
  }
}

function checkout(t: Trace, user: string, slow: boolean): void {
  const failure = slow && (user === unlucky || t.random() < 0.6) ? 'payment failed after 3 attempts' : undefined;
  const status = { 'http.response.status_code': failure ? 504 : 200 };
  const total = t.about(360) + (slow ? 1200 : 0);
  const root = t.add('frontend', 'POST /checkout', null, 0, total + 20, {
    error: failure, attributes: { 'http.request.method': 'POST', 'http.route': '/checkout', ...status, 'user.id': user, 'user.tier': t.pick('standard', 'standard', 'standard', 'plus') },
  });
  const gateway = t.add('gateway', 'POST /api/checkout', root, 2, total + 15, { error: failure, attributes: status });
  t.add('gateway', 'GET session', gateway, 3, t.about(1), { kind: 'client', attributes: { 'db.system.name': 'redis', 'peer.service': 'redis' } });
  const order = t.add('checkout', 'PlaceOrder', gateway, 6, total, { error: failure, attributes: { 'rpc.system': 'grpc', 'order.items': 1 + t.whole(8) } });
  const cart = t.add('cart', 'GetCart', order, 8, total * 0.2);
  t.add('cart', 'HGETALL cart', cart, 9, total * 0.15, { kind: 'client', attributes: { 'db.system.name': 'redis', 'peer.service': 'redis', 'db.query.text': `HGETALL cart:${user}` } });
  for (let i = 0, n = t.random() < 0.9 ? 1 + t.whole(24) : 60; i < n; i++) {
    t.add('pricing', 'Quote', order, 8 + total * (0.2 + 0.002 * i), t.about(2), { attributes: { sku: `sku-${t.whole(999)}` } });
  }
  t.add('inventory', 'Reserve', order, 8 + total * 0.28, total * 0.1);
  charge(t, order, total, slow, failure);
  t.add('checkout', 'INSERT orders', order, 8 + total * 0.92, t.about(6), {
    kind: 'client', attributes: {
      'db.system.name': 'postgresql', 'peer.service': 'postgres',
      'db.query.text': 'INSERT INTO orders (id, user_id, total, currency) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING RETURNING id',
    },
  });
}

const stack = 'UpstreamTimeout: no response headers\n    at HttpClient.await (client.ts:214)\n    at NorthpayProvider.charge (northpay.ts:88)\n    at Charge.run (charge.ts:41)';

/** One call of the payment provider, or three if it times out. */
function charge(t: Trace, order: TestSpan, total: number, slow: boolean, failure?: string): void {
  const provider = slow ? 'northpay' : t.pick('northpay', 'cardlane', 'cardlane', 'wallet');
  const payment = t.add('payment', 'Charge', order, 8 + total * 0.4, total * 0.5, {
    error: failure, attributes: { 'payment.provider': provider, 'payment.amount': Math.round(t.random() * 20000) / 100 },
  });
  for (let i = 0, tries = slow ? 3 : 1; i < tries; i++) {
    const failed = slow && (failure !== undefined || i < 2);
    const [at, duration] = [10 + total * (0.4 + (0.5 * i) / tries), (total * 0.48) / tries];
    t.add('payment', 'POST /v1/charges', payment, at, duration, {
      kind: 'client', error: failed ? 'upstream timeout' : undefined,
      attributes: {
        'http.request.method': 'POST', 'server.address': `api.${provider}.example`, 'payment.provider': provider, 'payment.region': t.pick('eu-west', 'us-east'),
        'http.response.status_code': failed ? 504 : 200, ...(failed ? { 'error.type': 'timeout' } : {}), ...(slow ? { 'http.resend_count': i } : {}),
      },
      events: failed ? [{
        name: 'exception', time: order.start - 6 + at + duration,
        attributes: { 'exception.type': 'UpstreamTimeout', 'exception.message': 'no response headers from api.northpay.example within 500 ms', 'exception.stacktrace': stack },
      }] : [],
    });
  }
}

function product(t: Trace, user: string): void {
  const missing = t.random() < 0.01 ? 'product not found' : undefined;
  const duration = t.about(20);
  const root = t.add('frontend', 'GET /product/{id}', null, 0, duration + 10, {
    attributes: { 'http.request.method': 'GET', 'http.route': '/product/{id}', 'http.response.status_code': missing ? 404 : 200, 'user.id': user },
  });
  const get = t.add('catalog', 'GetProduct', root, 3, duration, { error: missing, attributes: { 'product.id': t.whole(5000) } });
  t.add('catalog', 'SELECT products', get, 5, duration * 0.7, {
    kind: 'client', attributes: {
      'db.system.name': 'postgresql', 'peer.service': 'postgres', 'db.query.text': 'SELECT p.id, p.name, p.price FROM products p JOIN stock s ON s.product_id = p.id WHERE p.id = $1',
    },
  });
}

function mail(t: Trace): void {
  const duration = t.about(50);
  const root = t.add('notification', 'process orders', null, 0, duration, { kind: 'consumer', attributes: { 'messaging.system': 'kafka', 'messaging.destination.name': 'orders' } });
  t.add('notification', 'SMTP send', root, 4, duration * 0.8, { kind: 'client', error: t.random() < 0.02 ? '421 too many connections' : undefined, attributes: { 'peer.service': 'smtp' } });
}

/**
 * The traces of the hour that ends at `end` (milliseconds since the epoch), oldest first. The new version of payment appears `update` minutes before
 * the end, with 0 never.
 */
export function shopTraces(count: number, end: number, seed = 1, update = deployed): TestSpan[][] {
  const random = seeded(seed);
  return Array.from({ length: count }, (_, i) => {
    const before = (1 - (i + random()) / count) * minutes;
    const updated = before < update;
    const t = new Trace(random, end - before * 60_000, updated);
    const user = i % 100 === 99 ? unlucky : `u-${1000 + t.whole(400)}`;
    const kind = user === unlucky ? 0 : t.random();
    if (kind < 0.45) checkout(t, user, updated && (user === unlucky || t.random() < 0.12));
    else if (kind < 0.8) product(t, user);
    else mail(t);
    return t.spans;
  });
}

/** Sends the hour of the shop that ends now, after `quiet` hours without the new version. */
export async function sendShop(program: Program, count = 1000, end = Date.now(), quiet = 0): Promise<TestSpan[][]> {
  const traces = shopTraces(count, end);
  for (let i = 1; i <= quiet; i++) traces.unshift(...shopTraces(count, end - i * minutes * 60_000, i + 1, 0));
  for (let i = 0; i < traces.length; i += 100) await sendSpans(program, traces.slice(i, i + 100).flat());
  return traces;
}
