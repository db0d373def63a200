// Outlines for tests.

import type { Outline } from '../../api/types';

/** A span of a hand-made trace; times in nanoseconds. */
export interface Sample {
  name: string;
  service?: string;
  at: number;
  takes: number;
  kind?: number;
  flags?: number;
  peer?: string;
  shift?: number;
  children?: Sample[];
}

/** Short form of a sample. */
export function span(name: string, at: number, takes: number, rest: Omit<Sample, 'name' | 'at' | 'takes'> = {}): Sample {
  return { name, at, takes, ...rest };
}

/** The outline of hand-made spans, each with the id 1 + its index. */
export function outlineOf(...tops: Sample[]): Outline {
  const o = emptyOutline();
  let before = 0;
  const add = (s: Sample, parent: number, service: string): void => {
    const at = o.spans++;
    const own = s.service ?? service;
    append(o, { parent, start: s.at - before, duration: s.takes, name: number(o.names, s.name), service: number(o.services, own), kind: s.kind ?? 1, flags: s.flags ?? (parent < 0 ? 2 : 0) });
    before = s.at;
    if (s.peer) {
      o.peers!.span.push(at);
      o.peers!.service.push(number(o.services, s.peer));
    }
    if (s.shift) {
      o.skew!.span.push(at);
      o.skew!.shift.push(s.shift);
    }
    s.children?.forEach((c) => add(c, at, own));
  };
  tops.forEach((s) => add(s, -1, 'web'));
  return finish(o);
}

/** A trace of random spans. `random` returns numbers from 0 to 1. Children can be outside their parents. */
export function randomOutline(random: () => number, spans: number): Outline {
  const upTo = (n: number): number => Math.floor(random() * n);
  const o = emptyOutline();
  o.services = ['a', 'b', 'c', 'peer'];
  o.names = ['x', 'y', 'z'];
  const open: { at: number; start: number; end: number }[] = [];
  let before = 0;
  for (let i = 0; i < spans; i++) {
    while (open.length > 0 && random() < 0.4) open.pop();
    const p = open[open.length - 1];
    const start = p ? p.start - 3 + upTo(p.end - p.start + 8) : upTo(50);
    const duration = random() < 0.1 ? 0 : upTo(p ? p.end - p.start + 5 : 100);
    append(o, { parent: p?.at ?? -1, start: start - before, duration, name: upTo(3), service: upTo(3), kind: upTo(6), flags: p ? 0 : random() < 0.7 ? 2 : 4 });
    if (random() < 0.1) {
      o.peers!.span.push(i);
      o.peers!.service.push(3);
    }
    before = start;
    open.push({ at: i, start, end: start + duration });
  }
  o.spans = spans;
  return finish(o);
}

/** A large trace: requests of 100 spans on 8 services, four levels deep. */
export function largeOutline(spans: number): Outline {
  const o = emptyOutline();
  o.services = ['gateway', 'checkout', 'cart', 'payment', 'pricing', 'inventory', 'shipping', 'notification', 'redis', 'postgres'];
  o.names = Array.from({ length: 200 }, (_, i) => `${['GET', 'SELECT', 'POST', 'call'][i % 4]} operation-${i}`);
  const random = seeded(7);
  const total = spans * 50_000;
  let before = 0;
  const add = (parent: number, start: number, duration: number, service: number): number => {
    append(o, { parent, start: start - before, duration, name: Math.floor(random() * 200), service, kind: 1 + Math.floor(random() * 5), flags: (parent < 0 ? 2 : 0) | (random() < 0.002 ? 1 : 0) });
    before = start;
    if (random() < 0.1) {
      o.peers!.span.push(o.spans);
      o.peers!.service.push(8 + (o.spans % 2));
    }
    return o.spans++;
  };
  const root = add(-1, 0, total, 0);
  for (let at = 1000; o.spans < spans; at += 5_000_000) {
    const call = add(root, at, 4_900_000, 1 + (o.spans % 7));
    for (let k = 0; k < 9 && o.spans < spans; k++) {
      const inner = add(call, at + k * 500_000, 450_000, k % 8);
      for (let j = 0; j < 10 && o.spans < spans; j++) add(inner, at + k * 500_000 + j * 40_000, 30_000 + Math.floor(random() * 20_000), j % 8);
    }
  }
  return finish(o);
}

/** A trace in which each span has one child. */
export function deepOutline(spans: number): Outline {
  const o = emptyOutline();
  o.services = ['a'];
  o.names = ['x'];
  for (; o.spans < spans; o.spans++) append(o, { parent: o.spans - 1, start: o.spans ? 1 : 0, duration: 2 * (spans - o.spans), name: 0, service: 0, kind: 1, flags: o.spans ? 0 : 2 });
  return finish(o);
}

/** Random numbers from 0 to 1 that are the same in each run (mulberry32). */
export function seeded(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let item = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    item = (item + Math.imul(item ^ (item >>> 7), 61 | item)) ^ item;
    return ((item ^ (item >>> 14)) >>> 0) / 4294967296;
  };
}

function emptyOutline(): Outline {
  return {
    traceID: '0'.repeat(31) + '1', start: '1700000000000000000', duration: 0, spans: 0, errors: 0, cut: false, services: [], names: [],
    columns: { parent: [], start: [], duration: [], name: [], service: [], kind: '', flags: '', id: '' },
    peers: { span: [], service: [] }, skew: { span: [], shift: [] },
  };
}

function append(o: Outline, s: { parent: number; start: number; duration: number; name: number; service: number; kind: number; flags: number }): void {
  const c = o.columns;
  for (const key of ['parent', 'start', 'duration', 'name', 'service'] as const) c[key].push(s[key]);
  c.kind += s.kind.toString(16);
  c.flags += s.flags.toString(16);
}

function number(words: string[], word: string): number {
  return words.includes(word) ? words.indexOf(word) : words.push(word) - 1;
}

function finish(o: Outline): Outline {
  const ids = Buffer.alloc(8 * o.spans);
  for (let i = 0; i < o.spans; i++) ids.writeUInt32BE(i + 1, 8 * i + 4);
  o.columns.id = ids.toString('base64');
  return o;
}
