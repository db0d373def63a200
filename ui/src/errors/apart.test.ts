import { expect, test } from 'vitest';
import type { ErrorGroup } from '../api/errors';
import type { Facets } from '../api/types';
import { apartOf, comparedWith } from './apart';

function facets(spans: number, selected: number): Facets {
  const facet = (field: string, count: number[], of: number[]): Facets['facets'][number] => ({
    field, spans, selected, distinct: 2, other: 0, score: 1,
    values: { text: ['a', 'b'], count, selected: of, score: count.map((n, i) => of[i] / selected - (n - of[i]) / (spans - selected)) },
  });
  return {
    spans, errors: selected, selected, share: 1, scanned: spans, estimatedSpans: spans, estimatedErrors: selected, estimatedSelected: selected, omitted: 0,
    facets: [facet('status', [selected, spans - selected], [selected, 0]), facet('span.host', [50, 50], [25, 25]), facet('span.provider', [60, 40], [50, 0])],
  };
}

test('finds values of the failed spans, not what follows from the failure', () => {
  expect(apartOf(facets(100, 50))).toEqual([{ field: 'span.provider', value: 'a', failed: 1, others: 0.2 }]);
});

test('says nothing about few spans', () => {
  expect(apartOf(facets(100, 29))).toBeNull();
  expect(apartOf(facets(100, 71))).toBeNull();
});

test('compares with spans of the same operations', () => {
  const g = { service: 'a"b', operations: [{ text: 'x', count: 2 }, { text: 'y', count: 1 }] } as ErrorGroup;
  expect(comparedWith(g)).toBe('{ service = "a\\"b" && (name = "x" || name = "y") }');
  expect(comparedWith({ ...g, operations: [{ text: 'x', count: 2 }] })).toBe('{ service = "a\\"b" && name = "x" }');
});
