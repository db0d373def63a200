// The order of vertices within layers, with few crossings of edges.

import type { Layers } from './graph-layers';

/** Number of vertices above which less time is spent on each. */
const many = 1500;

/** Sorts the rows of layers: each vertex goes to the middle of its neighbors, back and forth, and the best order stays. */
export function orderRows(l: Layers): void {
  const place = new Float64Array(l.width.length);
  const number = (row: number[]): void => row.forEach((v, i) => { place[v] = i; });
  l.rows.forEach(number);
  const sweeps = l.width.length > many ? 6 : 24;
  let best = l.rows.map((row) => [...row]);
  let least = crossings(l, place);
  for (let i = 0; i < sweeps && least > 0; i++) {
    const toRight = i % 2 === 0;
    const near = toRight ? l.left : l.right;
    for (const row of toRight ? l.rows : l.rows.toReversed()) {
      const middle = new Map(row.map((v) => [v, near[v].length ? near[v].reduce((sum, u) => sum + place[u], 0) / near[v].length : place[v]]));
      row.sort((a, b) => middle.get(a)! - middle.get(b)!);
      number(row);
    }
    const now = crossings(l, place);
    if (now < least) [least, best] = [now, l.rows.map((row) => [...row])];
  }
  l.rows.splice(0, l.rows.length, ...best);
}

/** Number of crossings between all neighboring layers. */
export function crossings(l: Layers, place: Float64Array): number {
  let sum = 0;
  for (let i = 0; i + 1 < l.rows.length; i++) {
    const counts = new Int32Array(l.rows[i + 1].length + 1); // a Fenwick tree
    let added = 0;
    for (const v of l.rows[i]) {
      const ends = l.right[v].map((u) => place[u]).sort((a, b) => a - b);
      for (const end of ends) {
        let before = 0;
        for (let k = end + 1; k > 0; k -= k & -k) before += counts[k];
        sum += added - before;
      }
      for (const end of ends) for (let k = end + 1; k < counts.length; k += k & -k) counts[k]++;
      added += ends.length;
    }
  }
  return sum;
}
