// Spans by lane of the flame graph.

import type { Extras, TraceModel } from './types';

/** Spans of each lane in the order of their starts, relative to the lane of `root`. */
export interface LaneIndex {
  lanes: number;
  /** Spans of lane l: spans[offset[l]] to spans[offset[l+1]-1]. They do not overlap. */
  offset: Int32Array;
  spans: Int32Array;
}

type Times = Pick<TraceModel, 'spans' | 'subtree' | 'start' | 'end'>;

/** Lists the spans below `root`, or all with -1, by lane. */
export function laneIndex(m: Times, extras: Extras, root: number): LaneIndex {
  const [first, last] = root < 0 ? [0, m.spans] : [root, root + m.subtree[root]];
  const base = root < 0 ? 0 : extras.lane[root];
  let lanes = 0;
  for (let i = first; i < last; i++) lanes = Math.max(lanes, extras.lane[i] - base + 1);
  const offset = new Int32Array(lanes + 1);
  for (let i = first; i < last; i++) offset[extras.lane[i] - base + 1]++;
  for (let l = 0; l < lanes; l++) offset[l + 1] += offset[l];
  const next = offset.slice();
  const spans = new Int32Array(last - first);
  for (let i = first; i < last; i++) spans[next[extras.lane[i] - base]++] = i;
  for (let l = 0; l < lanes; l++) {
    const lane = spans.subarray(offset[l], offset[l + 1]);
    if (!inOrder(lane, m.start)) lane.sort((a, b) => m.start[a] - m.start[b] || a - b);
  }
  return { lanes, offset, spans };
}

function inOrder(list: Int32Array, key: Float64Array): boolean {
  for (let i = 1; i < list.length; i++) if (key[list[i]] < key[list[i - 1]]) return false;
  return true;
}

/** Position in `spans` of the first span of a lane that ends at or after a time. */
export function firstAfter(m: Times, index: LaneIndex, lane: number, time: number): number {
  let [low, high] = [index.offset[lane], index.offset[lane + 1]];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (m.end[index.spans[middle]] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The span of a lane at a time, or the nearest one within `tolerance` nanoseconds; -1 if there is none. */
export function spanAt(m: Times, index: LaneIndex, lane: number, time: number, tolerance: number): number {
  if (lane < 0 || lane >= index.lanes) return -1;
  let best = -1;
  let distance = tolerance;
  for (let i = firstAfter(m, index, lane, time - tolerance); i < index.offset[lane + 1]; i++) {
    const span = index.spans[i];
    if (m.start[span] > time + tolerance) break;
    const d = Math.max(0, m.start[span] - time, time - m.end[span]);
    if (d <= distance) [best, distance] = [span, d];
  }
  return best;
}

/** The span before (-1) or after (1) another one in its lane, or -1. */
export function neighbor(index: LaneIndex, lane: number, span: number, step: 1 | -1): number {
  const row = index.spans.subarray(index.offset[lane], index.offset[lane + 1]);
  const at = row.indexOf(span);
  return at < 0 ? -1 : row[at + step] ?? -1;
}
