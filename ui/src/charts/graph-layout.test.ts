import { expect, test } from 'vitest';
import { edgePath } from './graph-layout';
import { runLayout } from './graph-layout-run';

const sizes = (n: number): { widths: Float32Array; heights: Float32Array } => ({ widths: new Float32Array(n).fill(100), heights: new Float32Array(n).fill(40) });

test('calls go from left to right, and nodes do not overlap', () => {
  const l = runLayout({ ...sizes(4), from: Int32Array.of(0, 0, 1), to: Int32Array.of(1, 2, 3) });
  expect(l.x[0]).toBeLessThan(l.x[1]);
  expect(l.x[1]).toBe(l.x[2]);
  expect(l.x[1]).toBeLessThan(l.x[3]);
  expect(Math.abs(l.y[1] - l.y[2])).toBeGreaterThanOrEqual(40);
  expect(l.width).toBeGreaterThan(l.x[3]);
  expect([...l.starts].every((s, i) => i === 0 || s > l.starts[i - 1])).toBe(true);
  expect(edgePath(l, 0)).toMatch(/^M[\d. ]+(C[\d. ]+)+$/);
});

test('cycles, repeated edges and calls of a node to itself are possible', () => {
  const l = runLayout({ ...sizes(3), from: Int32Array.of(0, 1, 2, 0, 1), to: Int32Array.of(1, 2, 0, 0, 2) });
  expect(l.starts[4]).toBe(l.starts[3]); // from 0 to 0
  expect(edgePath(l, 3)).toBe('');
  expect(edgePath(l, 4)).not.toBe('');
  expect(new Set([...l.x]).size).toBe(3);
});

test('a label widens the gap between two layers', () => {
  const edge = { ...sizes(2), from: Int32Array.of(0), to: Int32Array.of(1) };
  const distance = (labels: Float32Array | undefined): number => {
    const l = runLayout({ ...edge, labels });
    return l.x[1] - l.x[0];
  };
  expect(distance(Float32Array.of(120))).toBeGreaterThan(distance(undefined));
});

test('an empty graph has a layout', () => {
  const l = runLayout({ ...sizes(0), from: new Int32Array(0), to: new Int32Array(0) });
  expect(l.x.length).toBe(0);
});
