// What a heatmap shows, computed from the cells of the server. Rows are bands of duration, from short to long.

import type { Heatmap } from '../api/types';
import { millis } from '../shell/format';
import { t } from '../shell/text';
import type { Box } from '../shell/url';

/** A heatmap on a full grid. */
export interface HeatGrid {
  of: 'spans' | 'traces';
  columns: number;
  rows: number;
  /** Counts by column * rows + row. */
  count: Uint32Array;
  errors: Uint32Array;
  /** Highest count of a cell. */
  max: number;
  /** Start of the first column and width of a column, in milliseconds. */
  start: number;
  step: number;
  /** Duration bucket of the first row, buckets in a row, and buckets in a doubling of the duration. */
  firstBucket: number;
  perRow: number;
  perOctave: number;
}

/** A cell of the grid. */
export interface Cell {
  column: number;
  row: number;
}

const minRows = 32;

/** More rows than there are duration buckets: each has its own row. Boxes of grids with any number of rows are counted exactly. */
export const finest = 4096;

/** Puts the cells of an answer on a grid of at most `maxRows` rows. Empty rows surround a small range of durations. */
export function gridOf(h: Heatmap, maxRows = 48): HeatGrid {
  const { column, bucket, count, errors } = h.cells;
  let lowest = Infinity;
  let highest = -Infinity;
  for (const b of bucket) {
    lowest = Math.min(lowest, b);
    highest = Math.max(highest, b);
  }
  if (bucket.length === 0) [lowest, highest] = [20 * h.bucketsPerOctave, 27 * h.bucketsPerOctave];
  const perRow = Math.ceil((highest - lowest + 3) / maxRows);
  const used = Math.ceil((highest - lowest + 1) / perRow);
  const rows = Math.max(used + 2, minRows);
  const firstBucket = Math.max(0, lowest - perRow * Math.ceil((rows - used) / 2));
  const g: HeatGrid = {
    of: h.of ?? 'spans', columns: h.columns, rows, count: new Uint32Array(h.columns * rows), errors: new Uint32Array(h.columns * rows), max: 0,
    start: millis(h.start), step: h.step / 1e6, firstBucket, perRow, perOctave: h.bucketsPerOctave,
  };
  for (let i = 0; i < column.length; i++) {
    const at = column[i] * rows + Math.floor((bucket[i] - firstBucket) / perRow);
    g.count[at] += count[i];
    g.errors[at] += errors[i];
    g.max = Math.max(g.max, g.count[at]);
  }
  return g;
}

/** Nanoseconds at the lower edge of a row; fractions of rows are allowed. */
export function durationAt(g: HeatGrid, row: number): number {
  return 2 ** ((g.firstBucket + row * g.perRow) / g.perOctave);
}

/** Row, with its fraction, of a duration in nanoseconds. */
export function rowOf(g: HeatGrid, ns: number): number {
  return (Math.log2(Math.max(ns, 1)) * g.perOctave - g.firstBucket) / g.perRow;
}

/** Column, with its fraction, of a time in milliseconds since the epoch. */
export function columnOf(g: HeatGrid, ms: number): number {
  return (ms - g.start) / g.step;
}

/** Lightness of a cell with the count 1. Where no cell has many, single ones stay visible. */
export function lowestLevel(max: number): number {
  return max <= 1 ? 4 : max <= 16 ? 3 : 1;
}

/** Hue and lightness of a cell: at most 7, even steps of the logarithm of the count. Cells with mostly errors begin at 3, so that single failures stay visible. */
export function shadeOf(count: number, errors: number, max: number): { hue: 'ok' | 'mix' | 'err'; level: number } {
  const low = lowestLevel(max);
  const level = max <= 1 ? low : low + Math.min(7 - low, Math.floor((Math.log(count) / Math.log(max)) * (8 - low)));
  const part = errors / count;
  return part < 0.05 ? { hue: 'ok', level } : part <= 0.5 ? { hue: 'mix', level } : { hue: 'err', level: Math.max(3, level) };
}

/** The cells that a box covers at least in part; null if it is outside. `to` is inclusive. */
export function cellsOf(g: HeatGrid, b: Box): { from: Cell; to: Cell } | null {
  const part = 1e-6; // edges are rounded to milliseconds and nanoseconds
  const from = { column: Math.max(0, Math.floor(columnOf(g, b.t0) + part)), row: Math.max(0, Math.floor(rowOf(g, b.d0) + 1e-3)) };
  const to = { column: Math.min(g.columns, Math.ceil(columnOf(g, b.t1) - part)) - 1, row: Math.min(g.rows, Math.ceil(rowOf(g, b.d1) - 1e-3)) - 1 };
  return from.column <= to.column && from.row <= to.row ? { from, to } : null;
}

/** The box between two cells, both included. */
export function boxOf(g: HeatGrid, a: Cell, b: Cell): Box {
  const [c0, c1] = [Math.min(a.column, b.column), Math.max(a.column, b.column) + 1];
  const [r0, r1] = [Math.min(a.row, b.row), Math.max(a.row, b.row) + 1];
  return { t0: g.start + c0 * g.step, t1: g.start + c1 * g.step, d0: Math.floor(durationAt(g, r0)), d1: Math.ceil(durationAt(g, r1)) };
}

/** Counts in a box. */
export function sumOf(g: HeatGrid, b: Box): { count: number; errors: number } {
  const cells = cellsOf(g, b);
  const sum = { count: 0, errors: 0 };
  if (!cells) return sum;
  for (let c = cells.from.column; c <= cells.to.column; c++) {
    for (let r = cells.from.row; r <= cells.to.row; r++) {
      sum.count += g.count[c * g.rows + r];
      sum.errors += g.errors[c * g.rows + r];
    }
  }
  return sum;
}

/** Counts of each row in the columns `from` to `to`, both included. */
export function marginal(g: HeatGrid, from = 0, to = g.columns - 1): number[] {
  const sums = new Array<number>(g.rows).fill(0);
  for (let c = from; c <= to; c++) for (let r = 0; r < g.rows; r++) sums[r] += g.count[c * g.rows + r];
  return sums;
}

/** Row, with its fraction, below which the share `q` of the counts lies; null without counts. */
export function quantileRow(counts: number[], q: number): number | null {
  const total = counts.reduce((a, b) => a + b, 0);
  if (total === 0) return null;
  let rest = q * total;
  for (let r = 0; r < counts.length; r++) {
    if (counts[r] > 0 && rest <= counts[r]) return r + rest / counts[r];
    rest -= counts[r];
  }
  return counts.length;
}

/** Moves two places on an axis apart around their middle if they are closer than `least`. */
export function apart(places: number[], least: number): number[] {
  const [a, b] = places;
  if (places.length < 2 || Math.abs(a - b) >= least) return places;
  const [middle, half] = [(a + b) / 2, (a < b ? -least : least) / 2];
  return [middle + half, middle - half];
}

/** Durations with a label on the axis: 1 and 3 of each decade, or decades only where there is not enough space. */
export function durationTicks(g: HeatGrid, height: number): number[] {
  const [low, high] = [durationAt(g, 0), durationAt(g, g.rows)];
  const decades = Math.log10(high / low);
  const steps = height / decades > 56 ? [1, 3] : [1];
  const ticks: number[] = [];
  for (let d = Math.floor(Math.log10(low)); d <= Math.log10(high); d++) {
    for (const n of steps) {
      const ns = n * 10 ** d;
      const y = rowOf(g, ns) / g.rows;
      if (y > 0.02 && y < 0.98) ticks.push(ns);
    }
  }
  return ticks;
}

const minute = 60_000;
const timeSteps = [1000, 5000, 15_000, 30_000, minute, 2 * minute, 5 * minute, 10 * minute, 15 * minute, 30 * minute, 60 * minute, 180 * minute,
  360 * minute, 720 * minute, 1440 * minute, 2 * 1440 * minute, 7 * 1440 * minute, 28 * 1440 * minute];

/** Times with a label on the axis, in milliseconds since the epoch: at most one for each 100 px, or 64 px where there is little space. `offset` is added to UTC for the zone. */
export function timeTicks(g: HeatGrid, width: number, offset = 0): number[] {
  const length = g.columns * g.step;
  const distance = width < 600 ? 64 : 100;
  const step = timeSteps.find((s) => (length / s) * distance <= width) ?? length;
  const ticks: number[] = [];
  for (let t = Math.ceil((g.start + offset) / step) * step - offset; t < g.start + length; t += step) {
    const x = (t - g.start) / length;
    if (x * width > 20 && (1 - x) * width > 20) ticks.push(t);
  }
  return ticks;
}

/** Name of what a heatmap counts. */
export function thingsText(of: 'traces' | 'spans'): string {
  return of === 'traces' ? t('traces') : t('spans');
}
