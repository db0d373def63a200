import { expect, test } from 'vitest';
import type { TreePaths } from '../../../api/tree';
import { axisOf, foldedAtFirst, rowsOf, shapeOf } from './model';

/** Paths of a list of parents and starts; each call takes 10. */
function paths(parent: number[], start: number[] = parent.map((_, i) => i)): TreePaths {
  const of = <T>(value: T): T[] => parent.map(() => value);
  return {
    parent, service: of('web'), name: parent.map((_, i) => `call ${i}`), kind: of(''), traces: of(100), calls: of(100), errors: of(0), self: of(0), start,
    p50: of(5), p95: of(10), slowest: of({ trace: '1', span: '1' }), failed: of(null), omitted: 0,
  };
}

test('rows are in the order of their starts, each below its caller', () => {
  const shape = shapeOf(paths([-1, 0, 1, 0, -1], [5, 30, 31, 10, 0]));
  expect(rowsOf(shape, new Set()).map((r) => [r.path, r.depth, r.below, r.open])).toEqual([[4, 0, 0, false], [0, 0, 3, true], [3, 1, 0, false], [1, 1, 1, true], [2, 2, 0, false]]);
  expect(rowsOf(shape, new Set([0])).map((r) => r.path)).toEqual([4, 0]);
});

test('a large tree is folded at a depth, but two levels are open', () => {
  const wide = shapeOf(paths([-1, ...Array.from({ length: 100 }, () => 0), ...Array.from({ length: 100 }, (_, i) => i + 1)]));
  expect(rowsOf(wide, foldedAtFirst(wide)).length).toBe(101);
  const small = shapeOf(paths([-1, 0, 1, 2, 3]));
  expect(foldedAtFirst(small).size).toBe(0);
});

test('what is rare does not stretch the axis', () => {
  const p = paths([-1, 0, 0], [0, 20, 9000]);
  p.traces[2] = 2;
  expect(axisOf(p, 100)).toBe(30);
  p.p95[1] = 500; // beyond the axis
  expect(axisOf(p, 100)).toBe(40); // four round steps for 1.25 * 25
  expect(axisOf(paths([]), 0)).toBe(1);
});
