// Places of times on an axis on which long idle times are short. Nothing else maps times to places.

import type { TraceModel } from './types';

/** Times of a trace on a scale from 0 to `length`. A break is an idle time that takes `width`; everything else has its own length, in nanoseconds. */
export interface TimeScale {
  length: number;
  /** First and last time of each break, in order. */
  from: Float64Array;
  to: Float64Array;
  /** Where each break begins on the scale. */
  at: Float64Array;
  width: number;
}

/** Most breaks of a scale, the most of the scale that one and all of them take, and the least share of the running time that one leaves out. */
const maxBreaks = 40;
const breakShare = 0.08;
const allShare = 0.35;
const minShare = 0.05;

/** Share of a trace above which idle time is left out by itself. */
export const mostlyIdle = 0.5;

const none = new Float64Array(0);

/** The scale without breaks. */
export function plainScale(duration: number): TimeScale {
  return { length: Math.max(1, duration), from: none, to: none, at: none, width: 0 };
}

/** The scale on which the longest idle times of a trace are breaks. It has none if no idle time is worth it. */
export function brokenScale(m: Pick<TraceModel, 'path' | 'duration' | 'idle'>): TimeScale {
  const { span, from, to } = m.path;
  const length = (i: number): number => to[i] - from[i];
  const idle = [...span.keys()].filter((i) => span[i] < 0 && length(i) >= minShare * (m.duration - m.idle)).sort((a, b) => length(b) - length(a)).slice(0, maxBreaks);
  for (; idle.length > 0; idle.pop()) {
    const share = Math.min(breakShare, allShare / idle.length);
    const shown = idle.reduce((rest, i) => rest - length(i), m.duration);
    const all = shown > 0 ? shown / (1 - share * idle.length) : 1;
    const width = (all - shown) / idle.length;
    if (length(idle[idle.length - 1]) > width) return withBreaks(idle.sort((a, b) => a - b), m, all, width);
  }
  return plainScale(m.duration);
}

function withBreaks(idle: number[], m: Pick<TraceModel, 'path'>, length: number, width: number): TimeScale {
  const scale = { length, width, from: Float64Array.from(idle, (i) => m.path.from[i]), to: Float64Array.from(idle, (i) => m.path.to[i]), at: new Float64Array(idle.length) };
  let saved = 0;
  for (let k = 0; k < idle.length; k++) {
    scale.at[k] = scale.from[k] - saved;
    saved += scale.to[k] - scale.from[k] - width;
  }
  return scale;
}

/** Place of a time. */
export function placeOf(s: TimeScale, time: number): number {
  const k = lastUntil(s.from, time);
  if (k < 0) return time;
  const after = time - s.to[k];
  return s.at[k] + (after >= 0 ? s.width + after : (s.width * (time - s.from[k])) / (s.to[k] - s.from[k]));
}

/** Time at a place. */
export function timeOf(s: TimeScale, place: number): number {
  const k = lastUntil(s.at, place);
  if (k < 0) return place;
  const after = place - s.at[k] - s.width;
  return after >= 0 ? s.to[k] + after : s.from[k] + ((place - s.at[k]) / s.width) * (s.to[k] - s.from[k]);
}

/** A place that is not within a break: the end of it for a place within one, or its start. */
export function besideBreak(s: TimeScale, place: number, end: boolean): number {
  const k = lastUntil(s.at, place);
  return k < 0 || place > s.at[k] + s.width ? place : s.at[k] + (end ? s.width : 0);
}

/** Index of the last value of an ascending list that is not above `x`, or -1. */
function lastUntil(list: Float64Array, x: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] <= x) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
