import { expect, test } from 'vitest';
import { layersOf } from './graph-layers';
import { crossings, orderRows } from './graph-order';
import { placeRows } from './graph-place';

/** A graph from pairs of nodes. */
function graph(n: number, ...edges: [number, number][]) {
  return { widths: new Float32Array(n).fill(100), heights: new Float32Array(n).fill(40), from: Int32Array.from(edges, ([a]) => a), to: Int32Array.from(edges, ([, b]) => b) };
}

/** Crossings of the current order of rows. */
function crossed(l: ReturnType<typeof layersOf>): number {
  const place = new Float64Array(l.width.length);
  l.rows.forEach((row) => row.forEach((v, i) => { place[v] = i; }));
  return crossings(l, place);
}

test('edges lead from layer to layer, also through layers between', () => {
  const l = layersOf(graph(4, [0, 1], [1, 2], [0, 2], [3, 2]));
  const at = (v: number): number => l.rows.findIndex((row) => row.includes(v));
  for (const chain of l.chains) chain.slice(1).forEach((v, i) => expect(at(v)).toBe(at(chain[i]) + 1));
  expect(l.chains[2].length).toBe(3);
  expect(at(3)).toBe(at(2) - 1); // near what it calls
});

test('crossings are counted, and removed where possible', () => {
  const l = layersOf(graph(6, [0, 3], [1, 4], [2, 5]));
  l.rows[0].sort((a, b) => a - b);
  l.rows[1].sort((a, b) => b - a);
  expect(crossed(l)).toBe(3);
  orderRows(l);
  expect(crossed(l)).toBe(0);
});

test('nodes keep their distance and their order, near their neighbors', () => {
  const l = layersOf(graph(7, [0, 1], [0, 2], [0, 3], [1, 4], [2, 5], [3, 6]));
  orderRows(l);
  const y = placeRows(l);
  for (const row of l.rows) row.slice(1).forEach((v, i) => expect(y[v] - y[row[i]]).toBeGreaterThanOrEqual(40));
  expect(Math.abs(y[0] - y[l.rows[1][1]])).toBeLessThan(1); // in the middle of three
  expect(Math.min(...y)).toBe(20);
});
