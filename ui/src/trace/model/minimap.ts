// All spans, and the critical path, reduced to pixels.

import { shownService } from './span';
import { flag, type Minimap, type PathStrip, type TraceModel } from './types';

/** Reduces a trace to cells. Spans are spread over the lanes in order; in each cell the deepest span of the lane wins. */
export function minimap(m: TraceModel, columns: number, lanes: number): Minimap {
  const map: Minimap = { columns, lanes: Math.min(lanes, Math.max(1, m.spans)), service: new Int32Array(0), error: new Uint8Array(0) };
  map.service = new Int32Array(columns * map.lanes).fill(-1);
  map.error = new Uint8Array(columns * map.lanes);
  const scale = m.duration > 0 ? columns / m.duration : 0;
  const free = new Int32Array(columns + 1); // next cell of the lane that may be empty
  let lane = -1;
  for (let i = m.spans - 1; i >= 0; i--) {
    const l = Math.floor((i * map.lanes) / m.spans);
    if (l !== lane) {
      lane = l;
      for (let c = 0; c <= columns; c++) free[c] = c;
    }
    paint(m, i, map, lane * columns, free, scale);
  }
  return map;
}

/** Paints the empty cells of a span. Cells that are taken are skipped at once, so that the effort does not depend on how spans overlap. */
function paint(m: TraceModel, i: number, map: Minimap, at: number, free: Int32Array, scale: number): void {
  const first = Math.min(map.columns - 1, Math.floor(m.start[i] * scale));
  const last = Math.max(first + 1, Math.min(map.columns, Math.ceil(m.end[i] * scale)));
  const service = shownService(m, i);
  for (let c = next(free, first); c < last; c = next(free, c)) {
    map.service[at + c] = service;
    free[c] = c + 1;
  }
  if (m.flags[i] & flag.error) map.error[at + first] = 1;
}

/** The first cell from `cell` on that is empty. Shortens the way for the next time. */
function next(free: Int32Array, cell: number): number {
  let end = cell;
  while (free[end] !== end) end = free[end];
  while (free[cell] !== end) {
    const following = free[cell];
    free[cell] = end;
    cell = following;
  }
  return end;
}

/** The critical path between two times as pixels. In each column, the service with the most time wins; gaps count as one. */
export function pathStrip(m: TraceModel, columns: number, from = 0, to = m.duration): PathStrip {
  const strip: PathStrip = { service: new Int32Array(columns).fill(-1), gap: new Uint8Array(columns) };
  const { path } = m;
  const step = (to - from) / columns;
  if (!(step > 0)) return strip;
  const sums = new Map<number, number>(); // time in the current column by service; `gaps` for gaps
  for (let c = 0, i = 0; c < columns; c++) {
    const end = from + (c + 1) * step;
    sums.clear();
    while (i < path.span.length && path.to[i] <= end - step) i++;
    for (let k = i; k < path.span.length && path.from[k] < end; k++) {
      const key = path.gap[k] ? gaps : shownService(m, path.span[k]);
      sums.set(key, (sums.get(key) ?? 0) + Math.min(path.to[k], end) - Math.max(path.from[k], end - step));
    }
    const most = largest(sums);
    strip.gap[c] = most === gaps ? 1 : 0;
    strip.service[c] = Math.max(-1, most);
  }
  return strip;
}

const gaps = -2;

/** Key with the largest value, -1 if there is none. */
function largest(sums: Map<number, number>): number {
  let most = -1;
  for (const [key, time] of sums) if (most === -1 || time > sums.get(most)!) most = key;
  return most;
}
