import { describe, expect, it } from 'vitest';
import type { Change, Facet, Heatmap, TraceSummary } from '../../api/types';
import { nameIn, orderFacets } from './facet-order';
import { marksOf } from './marks';
import { stepOf } from './step';
import { slowestBound } from './slowest';
import { nextSort, sortTraces } from './sort';
import { stepsAfter, stepText, type Step } from './trail';

const trace = (traceID: string, duration: number): TraceSummary => ({ traceID, duration, match: '0', rootService: '', rootName: '', start: '0', spans: 1, errors: 0, orphans: 0, services: [] });

describe('sort', () => {
  it('lists the newest traces first without a key', () => {
    const list = [trace('a', 1), trace('b', 3), trace('c', 2)];
    expect(sortTraces(list, '')).toEqual(list);
    expect(sortTraces(list, 'nonsense')).toEqual(list);
    expect(sortTraces(list.map((t, i) => ({ ...t, start: `${[5, 9, 7][i]}000000` })), '').map((t) => t.traceID).join('')).toBe('bca');
    expect(sortTraces(list, '-duration').map((t) => t.traceID).join('')).toBe('bca');
    expect(sortTraces(list, 'duration').map((t) => t.traceID).join('')).toBe('acb');
  });

  it('goes through down, up and none', () => {
    expect(nextSort('', 'spans')).toBe('-spans');
    expect(nextSort('-spans', 'spans')).toBe('spans');
    expect(nextSort('spans', 'spans')).toBe('');
    expect(nextSort('-spans', 'duration')).toBe('-duration');
  });
});

describe('marks', () => {
  const change = (minute: number, service: string, to: string, from = '1', kind: Change['kind'] = 'version'): Change => ({ at: String(minute * 60e9), service, kind, from, to });

  it('joins versions at about the same time, and prefers the services of the search', () => {
    const list = [change(50, 'a', '2'), change(51, 'b', '3'), change(10, 'c', '4'), change(30, 'd', '5', ''), change(30, 'e', 'x', '', 'attribute')];
    expect(marksOf(list, 0, 60 * 60e3, [])).toEqual([{ at: 51 * 60e3, label: 'b 3 and 1 more' }, { at: 10 * 60e3, label: 'c 4' }]);
    expect(marksOf(list, 0, 60 * 60e3, ['a']).map((m) => m.label)).toEqual(['a 2 and 1 more', 'c 4']);
  });
});

describe('columns', () => {
  it('divides a range into at most 120 steps of whole seconds', () => {
    expect([60_000, 1_800_000, 3_600_000, 86_400_000, 7 * 86_400_000].map(stepOf)).toEqual(['1s', '15s', '30s', '900s', '7200s']);
  });
});

describe('facets', () => {
  const facet = (field: string, count: number[], score = 0, distinct = count.length): Facet => ({
    field, spans: 100, selected: 0, distinct, other: 0, score, values: { text: count.map(String), count, selected: count.map(() => 0), score: count.map(() => score) },
  });

  it('orders by what tells failures apart, then by even division', () => {
    const order = orderFacets([facet('one', [100]), facet('ids', [1, 1, 1], 0, 100), facet('even', [50, 50]), facet('status', [90, 10], 1), facet('cause', [80, 20], 0.6)], 100);
    expect(order.map((f) => f.field)).toEqual(['cause', 'even', 'status', 'ids', 'one']);
    expect(orderFacets(order, 100, new Set(['one']))[0].field).toBe('one');
    const renamed = { ...facet('span.db.query.text', [100]), names: ['span.db.query.text', 'span.db.statement'] };
    expect(orderFacets([...order, renamed], 100, new Set(['span.db.statement']))[0].field).toBe('span.db.query.text');
    expect(['span.db.statement', '.db.statement', 'name'].map((n) => nameIn(new Set([n]), renamed))).toEqual(['span.db.statement', '.db.statement', 'span.db.query.text']);
    expect(orderFacets([facet('even', [50, 50]), facet('name', [90, 10])], 100, new Set(), true)[0].field).toBe('name');
  });
});

describe('slowestBound', () => {
  // Buckets 80, 84, 88 of 4 in a doubling: 2^20, 2^21 and 2^22 ns.
  const heat = (count: number[], share = 1): Heatmap => ({
    of: 'traces', start: '0', step: 1, columns: 2, bucketsPerOctave: 4, spans: 0, errors: 0, share, scanned: 0, estimatedSpans: 0, estimatedErrors: 0,
    cells: { column: [0, 1, 0], bucket: [84, 88, 80], count, errors: [0, 0, 0] },
    exemplars: { traceID: [], spanID: [], start: [], duration: [], service: [], name: [], error: [] },
  });

  it('takes bands from the slowest on until there are enough', () => {
    expect(slowestBound(heat([5, 10, 100]), 10, 500)).toEqual({ ns: 2 ** 22, traces: 10 });
    expect(slowestBound(heat([5, 10, 100]), 11, 500)).toEqual({ ns: 2 ** 21, traces: 15 });
    expect(slowestBound(heat([5, 10, 100]), 1000, 500)).toEqual({ ns: 2 ** 20, traces: 115 });
    expect(slowestBound(heat([5, 10, 100], 0.5), 20, 500)).toEqual({ ns: 2 ** 22, traces: 20 });
  });

  it('stops before there are too many', () => {
    expect(slowestBound(heat([5, 10, 100]), 50, 60)).toEqual({ ns: 2 ** 21, traces: 15 });
    expect(slowestBound(heat([5, 10, 100]), 50, 9)).toBeNull();
  });
});

describe('steps of a search', () => {
  const range = { from: 'now-1h', to: 'now' };
  const box = { t0: 0, t1: 60_000, d0: 1e9, d1: 2e9 };
  const all: Step = { q: '', range, sel: null };
  const service: Step = { ...all, q: '{ service = "a" }' };
  const selected: Step = { ...service, sel: box };

  it('grow with each change, and shrink with a return', () => {
    const list = [all, service, selected].reduce(stepsAfter, [] as Step[]);
    expect(list).toEqual([all, service, selected]);
    expect(stepsAfter(list, { ...selected, sel: { ...box, t1: 90_000 } })).toHaveLength(3); // the same selection, changed
    expect(stepsAfter(list, { ...service })).toEqual([all, service]);
    expect(stepsAfter(list, { ...service, q: '{}' })).toHaveLength(4);
  });

  it('say what they changed', () => {
    expect(stepText(all, undefined)).toBe('All traces');
    expect(stepText(service, all)).toBe('{ service = "a" }');
    expect(stepText({ ...service, range: { from: 'now-3h', to: 'now' } }, service)).toBe('Last 3 hours');
    expect(stepText({ ...service, sel: 'errors' }, service)).toBe('errors');
    expect(stepText(selected, service).replaceAll('\u202f', ' ')).toMatch(/ to .*, 1\.00 s to 2\.00 s$/);
  });
});
