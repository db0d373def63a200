// Changes of the visible part of the time axis, as fractions of the trace.

/** Visible part: fractions of the trace, 0 <= from < to <= 1. */
export type Zoom = [from: number, to: number];

/** The whole trace. */
export const whole: Zoom = [0, 1];

/** Limits a part to the trace and to a minimum width, and keeps its width if it only moves. */
export function limit(from: number, to: number, least: number): Zoom {
  const width = Math.min(1, Math.max(to - from, least));
  const middle = (from + to) / 2;
  const start = Math.min(Math.max(0, middle - width / 2), 1 - width);
  return [start, start + width];
}

/** Zooms by a factor (below 1: closer) around a fraction of the trace. */
export function zoomBy(z: Zoom, factor: number, around: number, least: number): Zoom {
  const width = Math.min(1, Math.max((z[1] - z[0]) * factor, least));
  const share = z[1] > z[0] ? (around - z[0]) / (z[1] - z[0]) : 0.5;
  const from = around - share * width;
  return limit(from, from + width, least);
}

/** Moves the part by a share of its width. */
export function pan(z: Zoom, share: number): Zoom {
  const by = (z[1] - z[0]) * share;
  return limit(z[0] + by, z[1] + by, 0);
}

/** The part that shows a span with some space around it. */
export function around(start: number, end: number, least: number): Zoom {
  const space = Math.max((end - start) * 0.08, least / 2);
  return limit(Math.max(0, start - space), Math.min(1, end + space), least);
}

/** The part as it is in the URL: null for the whole trace. */
export function forURL(z: Zoom): Zoom | null {
  return z[0] <= 1e-6 && z[1] >= 1 - 1e-6 ? null : z;
}
