// Heights of vertices: each near the middle of its neighbors, in the order of its layer, and not over another.

import type { Layers } from './graph-layers';

const [nodeGap, edgeGap] = [22, 9];
const passes = 12;

/** Centers of vertices from top to bottom, in pixels from 0. */
export function placeRows(l: Layers): Float64Array {
  const y = new Float64Array(l.width.length);
  const offsets = l.rows.map((row) => offsetsOf(l, row));
  l.rows.forEach((row, i) => row.forEach((v, k) => { y[v] = offsets[i][k] - offsets[i].at(-1)! / 2; }));
  for (let pass = 0; pass < passes; pass++) {
    const both = pass >= passes - 2;
    const back = pass % 2 === 1;
    for (let i = 0; i < l.rows.length; i++) {
      const at = back ? l.rows.length - 1 - i : i;
      settle(l, l.rows[at], offsets[at], y, (v) => (both ? [...l.left[v], ...l.right[v]] : back ? l.right[v] : l.left[v]));
    }
  }
  const top = l.rows.flat().reduce((least, v) => Math.min(least, y[v] - l.height[v] / 2), Infinity);
  return y.map((at) => at - top);
}

/** Least distances of the vertices of a row from its first one. */
function offsetsOf(l: Layers, row: number[]): number[] {
  const out = [0];
  for (let k = 1; k < row.length; k++) {
    const [a, b] = [row[k - 1], row[k]];
    const gap = l.height[a] > 0 && l.height[b] > 0 ? nodeGap : edgeGap;
    out[k] = out[k - 1] + (l.height[a] + l.height[b]) / 2 + gap;
  }
  return out;
}

/** Moves the vertices of a row as near to the middle of their neighbors as their order allows: the least sum of squares. */
function settle(l: Layers, row: number[], offsets: number[], y: Float64Array, near: (v: number) => number[]): void {
  const blocks: { sum: number; weight: number; size: number }[] = [];
  row.forEach((v, k) => {
    const around = near(v);
    // Edges through a layer stay level; a vertex without neighbors yields.
    const weight = around.length === 0 ? 0.01 : l.height[v] === 0 ? 4 : around.length;
    const wanted = around.length === 0 ? y[v] : around.reduce((sum, u) => sum + y[u], 0) / around.length;
    blocks.push({ sum: weight * (wanted - offsets[k]), weight, size: 1 });
    while (blocks.length > 1 && blocks.at(-2)!.sum / blocks.at(-2)!.weight > blocks.at(-1)!.sum / blocks.at(-1)!.weight) {
      const b = blocks.pop()!;
      const a = blocks.at(-1)!;
      a.sum += b.sum;
      a.weight += b.weight;
      a.size += b.size;
    }
  });
  let k = 0;
  for (const b of blocks) for (const end = k + b.size; k < end; k++) y[row[k]] = b.sum / b.weight + offsets[k];
}
