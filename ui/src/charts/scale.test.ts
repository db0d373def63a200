import { describe, expect, it } from 'vitest';
import { areaPath, linePath, maxOf, niceTicks, spread } from './scale';

const x = (i: number): number => i * 10;
const y = (v: number): number => 100 - v;

describe('scale', () => {
  it('chooses at most four round grid lines', () => {
    expect(niceTicks(1.6)).toEqual([0, 0.5, 1, 1.5]);
    expect(niceTicks(28)).toEqual([0, 10, 20]);
    expect(niceTicks(0.064)).toEqual([0, 0.02, 0.04, 0.06]);
    expect(niceTicks(3)).toEqual([0, 1, 2, 3]);
    expect(niceTicks(0)).toEqual([0]);
  });
  it('finds the maximum beside gaps', () => {
    expect(maxOf([[1, null, 3], [null]], 2)).toBe(3);
    expect(maxOf([[null]], 2)).toBe(2);
  });
  it('does not bridge gaps', () => {
    expect(linePath([1, 2, null, 3, null, 4, 5], x, y)).toBe('M0.0 99.0L10.0 98.0M30.0 97.0h.8M50.0 96.0L60.0 95.0');
    expect(areaPath([1, 2, null, 3], x, y, 100)).toBe('M0.0 100L0.0 99.0L10.0 98.0L10.0 100ZM30.0 100L30.0 97.0L30.0 100Z');
  });
  it('separates labels', () => {
    expect(spread([50, 52, 10], 12, 0, 100)).toEqual([50, 62, 10]);
    expect(spread([98, 99], 12, 0, 100)).toEqual([88, 100]);
  });
});
