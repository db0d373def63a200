// Time axis of the waterfall: nanoseconds to pixels.

import { placeOf, timeOf, type TimeScale } from '../model/time-scale';
import type { Zoom } from './zoom';

/** Pixels that stay free at the right end, so that labels of the last spans fit. */
export const padding = 12;

/** A part of a scale on an axis: `from` to `to` nanoseconds on `width` pixels. */
export interface Axis {
  times: TimeScale;
  from: number;
  to: number;
  /** Place of `from` on the scale. */
  first: number;
  width: number;
  /** Pixels for each nanosecond outside breaks. */
  scale: number;
}

/** The axis of the visible part of a scale on an area of `width` pixels. */
export function makeAxis(times: TimeScale, zoom: Zoom, width: number): Axis {
  const first = zoom[0] * times.length;
  const last = Math.max(first + 1, zoom[1] * times.length);
  return { times, from: timeOf(times, first), to: timeOf(times, last), first, width, scale: Math.max(1, width - padding) / (last - first) };
}

/** Pixel of a time. */
export function pixel(axis: Axis, time: number): number {
  return (placeOf(axis.times, time) - axis.first) * axis.scale;
}

/** Time at a pixel. */
export function timeAt(axis: Axis, x: number): number {
  return timeOf(axis.times, axis.first + x / axis.scale);
}

/** Fraction of the scale at a pixel, limited to the scale. */
export function fractionAt(axis: Axis, x: number): number {
  return limited((axis.first + x / axis.scale) / axis.times.length);
}

/** Fraction of a scale of a time. */
export function fractionOf(times: TimeScale, time: number): number {
  return limited(placeOf(times, time) / times.length);
}

const limited = (fraction: number): number => Math.min(1, Math.max(0, fraction));

/** The closest zoom: a microsecond, or a millionth of the scale. */
export function leastZoom(times: TimeScale): number {
  return Math.min(1, Math.max(1e-6, 1000 / times.length));
}

/** A break: its pixels, limited to the axis, and the nanoseconds that it leaves out. */
export interface Break {
  left: number;
  right: number;
  time: number;
}

/** Breaks of the visible part. */
export function breaksOn(axis: Axis): Break[] {
  const { at, from, to, width } = axis.times;
  const x = (place: number): number => Math.min(axis.width, Math.max(0, (place - axis.first) * axis.scale));
  return Array.from(at, (a, k) => ({ left: x(a), right: x(a + width), time: to[k] - from[k] })).filter((b) => b.right > 0 && b.left < axis.width);
}
