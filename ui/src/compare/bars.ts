// The bars of a row: calls as strokes on the common scale.

import type { TraceModel } from '../trace/model/types';
import type { Side } from './types';

/** A stroke in pixels. */
export interface Stroke {
  left: number;
  width: number;
}

/** The spans of a row as strokes at least 2 px wide; those that touch are joined. `scale` is pixels for each nanosecond. */
export function strokes(model: TraceModel, side: Side, row: number, scale: number): Stroke[] {
  const list: Stroke[] = [];
  for (let i = side.offset[row]; i < side.offset[row + 1]; i++) {
    const s = side.spans[i];
    const left = model.start[s] * scale;
    const right = Math.max(left + 2, model.end[s] * scale);
    const previous = list[list.length - 1];
    if (previous && left <= previous.left + previous.width + 0.5) previous.width = Math.max(previous.width, right - previous.left);
    else list.push({ left, width: right - left });
  }
  return list;
}
