// All spans reduced to pixels.

import { shownService } from './span';
import { placeOf, plainScale, type TimeScale } from './time-scale';
import { flag, type Minimap, type TraceModel } from './types';

/** Reduces a trace to cells. Spans are spread over the lanes in order; in each cell the deepest span of the lane wins. */
export function minimap(m: TraceModel, columns: number, lanes: number, times = plainScale(m.duration)): Minimap {
  const map: Minimap = { columns, lanes: Math.min(lanes, Math.max(1, m.spans)), service: new Int32Array(0), error: new Uint8Array(0) };
  map.service = new Int32Array(columns * map.lanes).fill(-1);
  map.error = new Uint8Array(columns * map.lanes);
  const free = new Int32Array(columns + 1); // next cell of the lane that may be empty
  let lane = -1;
  for (let i = m.spans - 1; i >= 0; i--) {
    const l = Math.floor((i * map.lanes) / m.spans);
    if (l !== lane) {
      lane = l;
      for (let c = 0; c <= columns; c++) free[c] = c;
    }
    paint(m, i, map, lane * columns, free, times);
  }
  return map;
}

/** Paints the empty cells of a span. Cells that are taken are skipped at once, so that the effort does not depend on how spans overlap. */
function paint(m: TraceModel, i: number, map: Minimap, at: number, free: Int32Array, times: TimeScale): void {
  const scale = map.columns / times.length;
  const first = Math.min(map.columns - 1, Math.floor(placeOf(times, m.start[i]) * scale));
  const last = Math.max(first + 1, Math.min(map.columns, Math.ceil(placeOf(times, m.end[i]) * scale)));
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
