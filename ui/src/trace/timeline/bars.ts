// Shapes of a bar in pixels, reduced to what can be seen.

import type { CriticalPath, TraceModel } from '../model/types';
import { pixel, type Axis } from './axis';

/** Left and right edge of a bar in pixels, limited to a little more than the axis. At least 2 px wide. */
export interface Extent {
  left: number;
  right: number;
  /** Whether the bar is before or after the visible part. */
  outside: '' | 'before' | 'after';
}

/** Extent of the time from `start` to `end`. */
export function extent(axis: Axis, start: number, end: number): Extent {
  const left = pixel(axis, start);
  const right = Math.max(pixel(axis, end), left + 2);
  const outside = right < 0 ? 'before' : left > axis.width ? 'after' : '';
  return { left: Math.max(left, -4), right: Math.min(right, axis.width + 4), outside };
}

/** A part of a bar on the critical path: pixels from the left edge of the bar. */
export interface Piece {
  left: number;
  width: number;
  gap: boolean;
}

/** Segments of the critical path within a bar; `subtree` adds those of all descendants. Segments closer than a pixel are joined. */
export function pieces(model: TraceModel, path: CriticalPath, span: number, subtree: boolean, axis: Axis, bar: Extent): Piece[] {
  const last = span + (subtree ? model.subtree[span] : 1);
  const list: Piece[] = [];
  const segments = path.bySpan.subarray(path.offset[span], path.offset[last]);
  for (const s of subtree && segments.length > 1 ? segments.slice().sort((a, b) => a - b) : segments) {
    const left = Math.max(pixel(axis, path.from[s]), bar.left);
    const right = Math.min(pixel(axis, path.to[s]), bar.right);
    if (right <= left && !(right === left && left >= bar.left)) continue;
    const gap = path.gap[s] === 1;
    const previous = list[list.length - 1];
    const from = left - bar.left;
    const width = Math.max(1, right - left);
    if (previous && previous.gap === gap && from <= previous.left + previous.width + 0.5) previous.width = Math.max(previous.width, from + width - previous.left);
    else list.push({ left: from, width, gap });
  }
  return list;
}

/** A mark for one or more events. */
export interface EventMark {
  at: number;
  exception: boolean;
  /** Index of the first event in the columns of the model. */
  event: number;
  count: number;
}

/** Events of a span as marks at least `space` pixels apart. An exception wins over other events. */
export function eventMarks(model: TraceModel, span: number, axis: Axis, space = 4): EventMark[] {
  const list: EventMark[] = [];
  for (let e = model.eventFirst[span]; e < model.eventFirst[span + 1]; e++) {
    const at = pixel(axis, model.start[span] + model.eventTime[e]);
    if (at < -4 || at > axis.width + 4) continue;
    const previous = list[list.length - 1];
    const exception = model.eventException[e] === 1;
    if (!previous || at - previous.at >= space) list.push({ at, exception, event: e, count: 1 });
    else Object.assign(previous, { count: previous.count + 1, exception: previous.exception || exception });
  }
  return list;
}

/** A part of a bar in pixels. */
export interface Sliver {
  left: number;
  width: number;
}

/** Members of a group as slivers at least 1.5 px wide; those that touch are joined. */
export function slivers(model: TraceModel, group: number, axis: Axis): Sliver[] {
  const list: Sliver[] = [];
  const { offset, members } = model.groups;
  for (let i = offset[group]; i < offset[group + 1]; i++) {
    const left = Math.max(-4, pixel(axis, model.start[members[i]]));
    const right = Math.min(axis.width + 4, Math.max(left + 1.5, pixel(axis, model.end[members[i]])));
    if (right < 0 || left > axis.width) continue;
    addSliver(list, left, right);
  }
  return list;
}

/** Adds a sliver to those that begin before it, or joins it with the last one if they touch. */
export function addSliver(list: Sliver[], left: number, right: number): void {
  const previous = list[list.length - 1];
  if (previous && left <= previous.left + previous.width + 0.5) previous.width = Math.max(previous.width, right - previous.left);
  else list.push({ left, width: right - left });
}

/** First start and last end of the members of a group. */
export function groupTime(model: TraceModel, group: number): { start: number; end: number } {
  const { offset, members } = model.groups;
  let start = Infinity;
  let end = -Infinity;
  for (let i = offset[group]; i < offset[group + 1]; i++) {
    start = Math.min(start, model.start[members[i]]);
    end = Math.max(end, model.end[members[i]]);
  }
  return { start, end };
}
