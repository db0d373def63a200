import { expect, test } from 'vitest';
import type { Facet, Facets, SpanDetail } from '../../api/types';
import { apartOf } from './apart';

const span = (attributes: Record<string, string>, resource: Record<string, string> = {}): SpanDetail => {
  const list = (o: Record<string, string>) => Object.entries(o).map(([key, value]) => ({ key, type: 'string' as const, value }));
  return {
    spanID: '1', parentSpanID: '', traceState: '', service: 'a', name: 'b', kind: 'server', status: 'unset', statusMessage: '', start: '1', duration: 1,
    attributes: list(attributes), resource: list(resource), scope: { name: '', version: '', attributes: [] }, events: [], links: [], linkedFrom: [], warnings: [],
  };
};

const facet = (field: string, counts: Record<string, number>, more: Partial<Facet> = {}): Facet => {
  const text = Object.keys(counts);
  const count = Object.values(counts);
  return { field, spans: count.reduce((a, b) => a + b, 0), selected: 0, distinct: text.length, other: 0, score: 0, values: { text, count, selected: [], score: [] }, ...more };
};

const facets = (spans: number, ...list: Facet[]): Facets => ({ spans, errors: 0, selected: 0, share: 1, scanned: spans, estimatedSpans: spans, estimatedErrors: 0, estimatedSelected: 0, omitted: 0, facets: list });

const texts = (d: SpanDetail, f: Facets) => apartOf(d, f).map((a) => `${a.key} ${a.value} ${a.share}`);

test('names values that are rare, or that never occurred', () => {
  const f = facets(1000, facet('span.zone', { a: 600, b: 392, c: 8 }), facet('resource.service.version', { '2.13': 1000 }), facet('span.retries', { 1: 4 }));
  expect(texts(span({ zone: 'c', retries: '1' }, { 'service.version': '2.14' }), f)).toEqual(['service.version 2.14 0', 'retries 1 0.004', 'zone c 0.008']);
  expect(texts(span({ zone: 'b' }, { 'service.version': '2.13' }), f)).toEqual([]);
});

test('claims nothing of ids, of fields with too many values, and of few calls', () => {
  const ids = Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`u${i}`, 1]));
  expect(texts(span({ user: 'u7' }), facets(150, facet('span.user', ids)))).toEqual([]);
  expect(texts(span({ user: 'new' }), facets(150, facet('span.user', ids)))).toEqual([]);
  expect(texts(span({ zone: 'x' }), facets(1000, facet('span.zone', { a: 900 }, { distinct: 300, other: 100 })))).toEqual([]);
  expect(texts(span({ zone: 'x' }), facets(50, facet('span.zone', { a: 50 })))).toEqual([]);
});
