import { describe, expect, it } from 'vitest';
import type { Facet, TraceSummary } from '../../api/types';
import { orderFacets } from './facet-order';
import { nextSort, sortTraces } from './sort';

const trace = (traceID: string, duration: number): TraceSummary => ({ traceID, duration, match: '0', rootService: '', rootName: '', start: '0', spans: 1, errors: 0, orphans: 0, services: [] });

describe('sort', () => {
  it('keeps the order of the server without a key', () => {
    const list = [trace('a', 1), trace('b', 3), trace('c', 2)];
    expect(sortTraces(list, '')).toBe(list);
    expect(sortTraces(list, 'nonsense')).toBe(list);
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

describe('facets', () => {
  const facet = (field: string, count: number[], score = 0, distinct = count.length): Facet => ({
    field, spans: 100, selected: 0, distinct, other: 0, score, values: { text: count.map(String), count, selected: count.map(() => 0), score: count.map(() => score) },
  });

  it('orders by what tells failures apart, then by even division', () => {
    const order = orderFacets([facet('one', [100]), facet('ids', [1, 1, 1], 0, 100), facet('even', [50, 50]), facet('status', [90, 10], 1), facet('cause', [80, 20], 0.6)], 100);
    expect(order.map((f) => f.field)).toEqual(['cause', 'even', 'status', 'ids', 'one']);
    expect(orderFacets(order, 100, new Set(['one']))[0].field).toBe('one');
  });
});
