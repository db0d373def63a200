// Ancestors that stay in view while their descendants scroll.

import { rowAt, type List } from './rowwindow';

/** Maximum number of ancestors that stay in view. */
export const maxSticky = 5;

/** Rows of the ancestors of the first row that they do not cover, from the outermost. Of a deep row, the nearest `maxSticky`. */
export function stickyRows(level: Int32Array, list: List, scrollTop: number): number[] {
  for (let n = maxSticky; n > 0; n--) {
    const rows = ancestors(level, rowAt(list, scrollTop, n * list.height));
    if (rows.length < n) continue;
    const scrolledAway = (row: number, i: number): boolean => row <= rowAt(list, scrollTop, i * list.height - 0.01);
    const visible = rows.findIndex((row, i) => i >= n || !scrolledAway(row, i));
    return visible < 0 ? rows : rows.slice(0, visible);
  }
  return [];
}

function ancestors(level: Int32Array, row: number): number[] {
  const list: number[] = [];
  let least = level[row];
  for (let at = row - 1; at >= 0 && least > 0 && list.length < maxSticky; at--) {
    if (level[at] >= least) continue;
    least = level[at];
    list.unshift(at);
  }
  return list;
}
