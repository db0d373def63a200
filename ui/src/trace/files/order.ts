// Parents and order of the spans of a trace, by the rules of the server.

import { flag } from '../model/types';
import type { FileSpan } from './span';

/** The spans of a trace depth first, children by start, with the indexes of their parents in this order (-1 for none). */
export interface Ordered {
  spans: FileSpan[];
  /** Start in nanoseconds after the first start. Spans without a start time have 0. */
  start: number[];
  parent: number[];
  flags: number[];
  /** First start in nanoseconds since the epoch. */
  begin: bigint;
}

/** Orders the spans of a trace. Cycles of parents are broken at their earliest span. */
export function orderSpans(unordered: FileSpan[]): Ordered {
  const begin = firstStart(unordered);
  const relative = (s: FileSpan): number => (s.start === '0' ? 0 : Number(BigInt(s.start) - begin));
  const sorted = unordered.map((s) => ({ s, start: relative(s) })).sort((a, b) => a.start - b.start || (a.s.spanID < b.s.spanID ? -1 : a.s.spanID > b.s.spanID ? 1 : 0));
  const list = sorted.map((x) => x.s);
  const parent = resolveParents(list);
  const order = depthFirst(parent);
  const place = new Int32Array(list.length);
  order.forEach((at, i) => (place[at] = i));
  const start = order.map((at) => sorted[at].start);
  const parents = order.map((at) => (parent[at] < 0 ? -1 : place[parent[at]]));
  const spans = order.map((at) => list[at]);
  const flags = spans.map((s, i) => flagsOf(s, parents[i], start[i], start[parents[i]]));
  return { spans, start, parent: parents, flags, begin };
}

function firstStart(spans: FileSpan[]): bigint {
  let first = '';
  for (const { start } of spans) {
    if (start !== '0' && (first === '' || start.length < first.length || (start.length === first.length && start < first))) first = start;
  }
  return BigInt(first || '0');
}

function flagsOf(s: FileSpan, parent: number, start: number, parentStart: number): number {
  let flags = s.status === 'error' ? flag.error : 0;
  if (parent >= 0) flags |= start < parentStart ? flag.early : 0;
  else flags |= s.parentSpanID === '' ? flag.root : flag.orphan;
  return flags;
}

const isServer = (s: FileSpan): boolean => s.kind === 'server' || s.kind === 'consumer';

/** Maximum number of spans with one id that are considered as parents of another span. */
const maxSameID = 64;

/** Index of the parent of each span, or -1. Spans can share an id: both sides of a call, in Zipkin's formats. */
function resolveParents(spans: FileSpan[]): number[] {
  const byID = new Map<string, number[]>();
  let shared = false;
  spans.forEach((s, i) => {
    const list = byID.get(s.spanID);
    if (!list) byID.set(s.spanID, [i]);
    else if (list.length < maxSameID) list.push(i);
    shared ||= list !== undefined;
  });
  return spans.map((s, self) => {
    const find = (list: number[] | undefined, accept: (o: FileSpan) => boolean): number => list?.find((i) => i !== self && accept(spans[i])) ?? -1;
    if (shared && isServer(s)) {
      const client = find(byID.get(s.spanID), (o) => !isServer(o));
      if (client >= 0) return client;
    }
    if (s.parentSpanID === '') return -1;
    const list = byID.get(s.parentSpanID);
    if (!list) return -1;
    for (const accept of [(o: FileSpan) => o.service === s.service, isServer, () => true]) {
      const at = find(list, accept);
      if (at >= 0) return at;
    }
    return -1;
  });
}

/** Lists spans with their parents first. Breaks cycles by setting the parent of one span to -1. */
function depthFirst(parent: number[]): number[] {
  const children: number[][] = parent.map(() => []);
  parent.forEach((p, i) => {
    if (p >= 0) children[p].push(i);
  });
  const order: number[] = [];
  const seen = new Uint8Array(parent.length);
  const add = (top: number): void => {
    const stack = [top];
    for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
      if (seen[at]) continue;
      seen[at] = 1;
      order.push(at);
      for (let k = children[at].length - 1; k >= 0; k--) stack.push(children[at][k]);
    }
  };
  parent.forEach((p, i) => {
    if (p < 0) add(i);
  });
  for (let i = 0; i < parent.length; i++) {
    if (seen[i]) continue;
    const first = firstOfCycle(parent, i);
    parent[first] = -1;
    add(first);
  }
  return order;
}

/** The earliest span of the cycle that the ancestors of a span end in. */
function firstOfCycle(parent: number[], span: number): number {
  const passed = new Set<number>();
  for (; !passed.has(span); span = parent[span]) passed.add(span);
  let first = span;
  for (let s = parent[span]; s !== span; s = parent[s]) first = Math.min(first, s);
  return first;
}
