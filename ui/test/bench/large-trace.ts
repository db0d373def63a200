// Large traces: a request that spreads over many services, with repeated calls, errors and events.

import { seeded, type Random } from '../browser/shop.ts';
import type { TestSpan } from '../browser/spans.ts';

const services = [
  'frontend', 'gateway', 'checkout', 'cart', 'catalog', 'search', 'pricing', 'inventory', 'payment', 'fraud', 'ledger', 'shipping', 'tax', 'users',
  'session', 'recommendations', 'reviews', 'images', 'promotions', 'notification', 'mailer', 'audit', 'warehouse', 'currency',
];
const verbs = ['Get', 'List', 'Update', 'Validate', 'Resolve', 'Reserve'];
const things = ['Order', 'Item', 'Price', 'Stock', 'Account', 'Address', 'Offer', 'Quote'];
const queries = ['SELECT items', 'SELECT accounts', 'UPDATE stock', 'INSERT events'];

/** A value that is on one span of `markEvery`, for searches in attributes. */
export const marker = 'marked-for-review';
const markEvery = 1000;

interface Task {
  span: TestSpan;
  /** Number of spans below it. */
  below: number;
}

class Builder {
  readonly spans: TestSpan[] = [];
  private readonly tasks: Task[] = [];

  constructor(private readonly id: string, private readonly random: Random) {}

  build(count: number, start: number, duration: number): TestSpan[] {
    const root = this.add(null, 'frontend', 'POST /orders/import', 'server', start, duration);
    this.tasks.push({ span: root, below: count - 1 });
    for (let task = this.tasks.pop(); task; task = this.tasks.pop()) this.calls(task);
    return this.spans;
  }

  /** Adds the children of a span: repeated queries, or calls of services that share what is left. */
  private calls({ span, below }: Task): void {
    if (below === 0) return;
    if (below < 80 && this.random() < 0.3) return this.queries(span, below);
    const children = Math.min(below, 2 + this.whole(10));
    const slot = (span.duration * 0.95) / children;
    for (let i = 0, left = below - children; i < children; i++) {
      const share = i === children - 1 ? left : Math.min(left, Math.floor((left / (children - i)) * 2 * this.random()));
      left -= share;
      const server = share > 0 || this.random() < 0.5;
      const child = this.add(span, server ? this.pick(services) : span.service, `${this.pick(verbs)}${this.pick(things)}`, server ? 'server' : 'internal', span.start + span.duration * 0.02 + i * slot, slot * (0.3 + 0.7 * this.random()));
      this.tasks.push({ span: child, below: share });
    }
  }

  private queries(span: TestSpan, count: number): void {
    const name = this.pick(queries);
    const slot = (span.duration * 0.95) / count;
    for (let i = 0; i < count; i++) this.add(span, span.service, name, 'client', span.start + i * slot, slot * (0.2 + 0.8 * this.random()));
  }

  private add(parent: TestSpan | null, service: string, name: string, kind: TestSpan['kind'], start: number, duration: number): TestSpan {
    const n = this.spans.length;
    const failed = this.random() < 0.01;
    const span: TestSpan = {
      traceID: this.id, spanID: this.hex(16), parentID: parent?.spanID, service, name, kind, start, duration, error: failed && 'deadline exceeded' || undefined,
      attributes: kind === 'client'
        ? { 'db.system.name': 'postgresql', 'peer.service': 'postgres', 'db.query.text': `${name} WHERE id = $1 AND region = $2 LIMIT 100`, 'db.response.returned_rows': this.whole(100), 'server.address': `db-${this.whole(8)}` }
        : { 'rpc.system': 'grpc', 'rpc.method': name, 'http.response.status_code': failed ? 504 : 200, 'user.id': `u-${this.whole(5000)}`, 'thread.id': this.whole(64), 'region': this.pick(['eu-west', 'us-east', 'ap-south']) },
      resource: { 'service.version': `1.${service.length}.0`, 'service.instance.id': `${service}-${this.whole(6)}`, 'host.name': `node-${this.whole(20)}` },
      events: failed || this.random() < 0.03 ? [{ name: failed ? 'exception' : 'cache.miss', time: start + duration / 2, attributes: { 'exception.type': failed ? 'DeadlineExceeded' : '' } }] : [],
    };
    if (n % markEvery === markEvery / 2) span.attributes!.note = marker;
    this.spans.push(span);
    return span;
  }

  private whole(below: number): number {
    return Math.floor(this.random() * below);
  }

  private pick<T>(items: readonly T[]): T {
    return items[this.whole(items.length)];
  }

  private hex(digits: number): string {
    return Array.from({ length: digits }, () => this.whole(16).toString(16)).join('');
  }
}

/** A trace of `count` spans that starts at `start` (milliseconds since the epoch). The same spans in every run. */
export function largeTrace(id: string, count: number, start: number): TestSpan[] {
  return new Builder(id, seeded(count)).build(count, start, 1000 + count / 2);
}
