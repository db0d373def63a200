import { expect, it } from 'vitest';
import { usedRange } from './no-match';

it('offers the time of all stored spans, in whole columns', () => {
  const found = { start: '0', step: 3_600_000_000_000, cells: { column: [2, 2, 5], bucket: [1, 9, 1], count: [1, 1, 1], errors: [0, 0, 0] } };
  expect(usedRange(found)).toEqual({ from: '1970-01-01T02:00:00.000Z', to: '1970-01-01T06:00:00.000Z' });
});
