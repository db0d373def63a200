import { expect, it } from 'vitest';
import type { Config } from '../../api/types';
import { config } from '../../shell/config';
import { usedRange, widerRanges } from './no-match';

it('offers the time of all stored spans, in whole columns', () => {
  const found = { start: '0', step: 3_600_000_000_000, cells: { column: [2, 2, 5], bucket: [1, 9, 1], count: [1, 1, 1], errors: [0, 0, 0] } };
  expect(usedRange(found)).toEqual({ from: '1970-01-01T02:00:00.000Z', to: '1970-01-01T06:00:00.000Z' });
});

it('offers all stored spans only where they can be counted, which tells their time', () => {
  const labels = (aggregates: boolean): string[] => {
    config.value = { capabilities: { aggregates } } as Config;
    return widerRanges({ q: '{ error }', select: [], from: 1, to: 2, start: '1000000', end: '2000000' }).map((w) => w.label);
  };
  expect(labels(true)).toContain('All stored spans');
  expect(labels(false)).not.toContain('All stored spans');
});
