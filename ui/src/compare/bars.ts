// The bars of a row: calls as strokes on the common scale.

import type { TraceModel } from '../trace/model/types';
import { addSliver, type Sliver } from '../trace/timeline/bars';
import type { Side } from './types';

/** The spans of a row as strokes at least 2 px wide; those that touch are joined. `scale` is pixels for each nanosecond. */
export function strokes(model: TraceModel, side: Side, row: number, scale: number): Sliver[] {
  const list: Sliver[] = [];
  for (let i = side.offset[row]; i < side.offset[row + 1]; i++) {
    const left = model.start[side.spans[i]] * scale;
    addSliver(list, left, Math.max(left + 2, model.end[side.spans[i]] * scale));
  }
  return list;
}
