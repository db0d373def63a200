// Time axis of the waterfall: nanoseconds to pixels.

import type { TraceModel } from '../model/types';
import type { Zoom } from './zoom';

/** Pixels that stay free at the right end, so that labels of the last spans fit. */
export const padding = 12;

/** A part of the trace on an axis: `from` to `to` nanoseconds on `width` pixels. */
export interface Axis {
  from: number;
  to: number;
  width: number;
  /** Pixels for each nanosecond. */
  scale: number;
}

/** The axis of a zoomed trace on an area of `width` pixels. */
export function makeAxis(model: TraceModel, zoom: Zoom, width: number): Axis {
  const length = Math.max(1, model.duration);
  const from = zoom[0] * length;
  const to = Math.max(from + 1, zoom[1] * length);
  return { from, to, width, scale: Math.max(1, width - padding) / (to - from) };
}

/** Pixel of a time. */
export function pixel(axis: Axis, time: number): number {
  return (time - axis.from) * axis.scale;
}

/** Fraction of the trace at a pixel, limited to the trace. */
export function fractionAt(model: TraceModel, axis: Axis, x: number): number {
  const time = axis.from + x / axis.scale;
  return Math.min(1, Math.max(0, time / Math.max(1, model.duration)));
}

/** Fraction of the trace of a time. */
export function fractionOf(model: TraceModel, time: number): number {
  return Math.min(1, Math.max(0, time / Math.max(1, model.duration)));
}

/** The closest zoom: a microsecond, or a millionth of the trace. */
export function leastZoom(model: TraceModel): number {
  return Math.min(1, Math.max(1e-6, 1000 / Math.max(1, model.duration)));
}
