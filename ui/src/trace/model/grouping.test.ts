import { describe, expect, it } from 'vitest';
import { buildExtras } from './extras';
import { joinColumn, keysOf, valuesOf } from './attributes';
import { groupBy, ownValues, quantile, ranksOf, sortedBy, timeOnPath, totalsOf } from './grouping';
import { deepOutline, largeOutline, outlineOf, randomOutline, seeded, span } from './samples';
import { buildModel } from './build';
import { buildGraph } from './graph';
import { laneIndex, neighbor, spanAt } from './lanes';
import type { SpanDetail } from '../../api/types';
import type { TraceModel } from './types';

const model = (o: Parameters<typeof buildModel>[0]): TraceModel => buildModel(o, [], true);

/** Lanes do not overlap, and children are below their parents: the mistakes. */
function mistakes(m: TraceModel): string[] {
  const { lane, lanes } = buildExtras(m);
  const list: string[] = [];
  const order = Array.from({ length: m.spans }, (_, i) => i).sort((a, b) => lane[a] - lane[b] || m.start[a] - m.start[b] || m.end[a] - m.end[b]);
  order.forEach((s, i) => {
    if (m.parent[s] >= 0 && lane[s] <= lane[m.parent[s]]) list.push(`${s} is not below its parent`);
    if (lane[s] >= lanes) list.push(`${s} is in lane ${lane[s]} of ${lanes}`);
    if (i > 0 && lane[order[i - 1]] === lane[s] && m.start[s] < m.end[order[i - 1]]) list.push(`${s} overlaps with ${order[i - 1]}`);
  });
  return list;
}

describe('extras', () => {
  it('puts overlapping siblings in lanes, with what is below them', () => {
    const m = model(outlineOf(span('root', 0, 100, { children: [
      span('a', 0, 50, { children: [span('a1', 10, 20), span('a2', 15, 30)] }),
      span('b', 20, 30), span('c', 60, 10),
    ] })));
    const { lane, lanes, self } = buildExtras(m);
    const at = Object.fromEntries(Array.from({ length: m.spans }, (_, i) => [m.names[m.name[i]], lane[i]]));
    expect(at).toEqual({ root: 0, a: 1, a1: 2, a2: 3, b: 4, c: 1 });
    expect(lanes).toBe(5);
    const own = Object.fromEntries(Array.from({ length: m.spans }, (_, i) => [m.names[m.name[i]], self[i]]));
    expect(own).toEqual({ root: 40, a: 15, a1: 20, a2: 30, b: 30, c: 10 });
  });

  it('never overlaps, whatever the trace', () => {
    for (let seed = 1; seed <= 60; seed++) expect(mistakes(model(randomOutline(seeded(seed), 80)))).toEqual([]);
  });

  it('takes traces that are deep, large or wide', () => {
    expect(buildExtras(model(deepOutline(50_000))).lanes).toBe(50_000);
    expect(mistakes(model(largeOutline(20_000)))).toEqual([]);
    const wide = model(outlineOf(span('root', 0, 1e6, { children: Array.from({ length: 3000 }, (_, i) => span('x', i, 9e5)) })));
    expect(buildExtras(wide).lanes).toBe(3001);
    expect(mistakes(wide)).toEqual([]);
  });
});

describe('lanes', () => {
  const m = model(outlineOf(span('root', 0, 100, { children: [span('a', 0, 50, { children: [span('a1', 10, 20), span('a2', 32, 8)] }), span('b', 20, 30), span('c', 60, 10)] })));
  const name = (s: number): string => (s < 0 ? '' : m.names[m.name[s]]);
  const extras = buildExtras(m);
  const index = laneIndex(m, extras, -1);
  const lanes = (x: typeof index): string[] => Array.from({ length: x.lanes }, (_, l) => [...x.spans.subarray(x.offset[l], x.offset[l + 1])].map(name).join(' '));

  it('lists the spans of each lane, also below another root', () => {
    expect(lanes(index)).toEqual(['root', 'a c', 'a1 a2', 'b']);
    expect(lanes(laneIndex(m, extras, 1))).toEqual(['a', 'a1 a2']);
  });

  it('finds spans by time, with a tolerance, and beside each other', () => {
    expect(name(spanAt(m, index, 2, 15, 0))).toBe('a1');
    expect(name(spanAt(m, index, 2, 31, 0))).toBe('');
    expect(name(spanAt(m, index, 2, 31.2, 1))).toBe('a2');
    expect(name(spanAt(m, index, 2, 30.5, 1))).toBe('a1');
    expect(spanAt(m, index, 9, 15, 0)).toBe(-1);
    expect(name(neighbor(index, 2, 2, 1))).toBe('a2');
    expect(neighbor(index, 2, 2, -1)).toBe(-1);
  });
});

describe('grouping', () => {
  const m = model(outlineOf(span('GET', 0, 100, { service: 'web', children: [
    span('SELECT', 10, 20, { service: 'db' }), span('SELECT', 40, 40, { service: 'db', flags: 1 }), span('GET', 85, 10, { service: 'web' }),
  ] })));
  const all = Int32Array.from({ length: m.spans }, (_, i) => i);

  it('adds up spans by one or two keys', () => {
    const { self } = buildExtras(m);
    const onPath = timeOnPath(m.path, m.spans);
    const services = ownValues(m, 'service');
    const g = groupBy([services], all);
    expect([...g.key[0]].map((v) => services.values[v])).toEqual(['web', 'db']);
    const t = totalsOf(m, g, self, onPath);
    expect([...t.count]).toEqual([2, 2]);
    expect([...t.total]).toEqual([100, 60]); // one GET is within the other
    expect([...t.errors]).toEqual([0, 1]);
    expect([...t.p50]).toEqual([10, 20]);
    expect([...t.p95]).toEqual([100, 40]);
    expect([...t.onPath].map((x, i) => x + t.offPath[i])).toEqual([40, 60]);
    const pairs = groupBy([services, ownValues(m, 'status')], all);
    expect([...pairs.offset]).toEqual([0, 2, 3, 4]);
    expect(pairs.key.map((k) => [...k].length)).toEqual([3, 3]);
    expect([...groupBy([services], Int32Array.of(1)).members]).toEqual([1]);
  });

  it('makes a graph of the calls between groups', () => {
    const services = ownValues(m, 'service');
    const g = buildGraph(m, [services], all, timeOnPath(m.path, m.spans));
    expect([...g.nodes].map((n) => services.values[g.groups.key[0][n]])).toEqual(['web', 'db']);
    expect([g.from, g.to, g.calls, g.errors, g.time, g.omitted]).toEqual([[0], [1], [2], [1], [60], 0]);
    const below = buildGraph(m, [ownValues(m, 'name')], Int32Array.of(0, 2), new Float64Array(m.spans));
    expect([below.from, below.to, below.calls]).toEqual([[0], [1], [1]]);
    const wide = model(outlineOf(span('root', 0, 1000, { children: Array.from({ length: 300 }, (_, i) => span(`op ${i}`, i, 1 + (i % 50))) })));
    const many = buildGraph(wide, [ownValues(wide, 'name')], Int32Array.from({ length: wide.spans }, (_, i) => i), timeOnPath(wide.path, wide.spans));
    expect([many.nodes.length, many.omitted, many.from.length]).toEqual([200, 101, 199]);
  });

  it('sorts with equal values in their order', () => {
    expect([...sortedBy(Int32Array.of(5, 6, 7), (i) => i % 2, true)]).toEqual([5, 7, 6]);
    expect([...ranksOf(['b', 'a', 'c'])]).toEqual([1, 0, 2]);
    expect(quantile(Float64Array.of(1, 2, 3, 4), 0.5)).toBe(2);
    expect(quantile(new Float64Array(0), 0.5)).toBe(0);
  });

  it('reads attributes of files and of the server', () => {
    const attribute = (key: string, value: string) => ({ key, type: 'string' as const, value });
    const details = [
      { attributes: [attribute('user', 'ann')], resource: [attribute('host', 'a')] }, { attributes: [attribute('user', 'bob'), attribute('user', 'eve')], resource: [attribute('host', 'a')] },
      { attributes: [], resource: [] }, { attributes: [attribute('user', 'ann'), attribute('long', 'x'.repeat(999))], resource: [] },
    ] as unknown as SpanDetail[];
    expect(keysOf(details)).toEqual({ key: ['span.user', 'resource.host', 'span.long'], spans: [3, 2, 1], more: false });
    expect(valuesOf(details, 'span.user')).toEqual({ values: ['ann', 'bob'], value: Int32Array.of(0, 1, -1, 0) });
    expect(valuesOf(details, 'resource.host').value).toEqual(Int32Array.of(0, 0, -1, -1));
    expect(valuesOf(details, 'span.long').values[0]).toHaveLength(257);
    const joined = joinColumn(m, { values: ['x'], ids: '', value: [0, 0] }, new Uint8Array([...m.ids.slice(8, 16), ...m.ids.slice(24, 32)]));
    expect([...joined.value]).toEqual([-1, 0, -1, 0]);
  });
});
