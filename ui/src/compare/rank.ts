// Finds the rows of a comparison in which differences begin.

import { change, type Comparison } from './types';

/** Share of the longer trace, and of the time of a row, up to which different times count as equal. */
const equalShare = { trace: 0.002, row: 0.05 };

/** Share of the longer trace that calls and errors count at least which are in one trace only: small ones are more telling than noise. */
const leastShare = 0.05;

/** Sets what changed, and how much of the difference begins in each row. `longer` is the longer duration. */
export function rank(c: Comparison, longer: number): void {
  c.threshold = equalShare.trace * longer;
  const failsBelow = newErrors(c);
  for (let r = 0; r < c.rows; r++) {
    const bits = structure(c, r) | (failsBelow[r] ? 0 : errorBit(c, r));
    const [a, b] = [c.a.time[r], c.b.time[r]];
    const differs = Math.abs(a - b) > Math.max(c.threshold, equalShare.row * Math.max(a, b));
    c.change[r] = bits | (differs ? change.time : 0);
    c.impact[r] = timeImpact(c, r, bits);
    if (bits) c.impact[r] += leastShare * longer;
    c.common ||= calls(c, r, 'a') > 0 && calls(c, r, 'b') > 0;
  }
}

/** Number of spans of a row. */
export function calls(c: Comparison, row: number, side: 'a' | 'b'): number {
  return c[side].offset[row + 1] - c[side].offset[row];
}

/** Whether a row is in one trace only, or called more or less often than its caller explains. */
function structure(c: Comparison, r: number): number {
  const [a, b] = [calls(c, r, 'a'), calls(c, r, 'b')];
  const p = c.parent[r];
  const [callersA, callersB] = p < 0 ? [1, 1] : [calls(c, p, 'a'), calls(c, p, 'b')];
  if (callersA === 0 || callersB === 0) return 0; // all below a row that is in one trace only
  if (b === 0) return change.onlyA;
  if (a === 0) return change.onlyB;
  return a * callersB !== b * callersA ? change.calls : 0;
}

/** Whether a row fails in one trace only. */
function errorBit(c: Comparison, r: number): number {
  return failing(c, r) !== 0 ? change.errors : 0;
}

/** 1: fails in A only, 2: in B only, 0: in both or none, or not called in both. */
function failing(c: Comparison, r: number): number {
  const [a, b] = [c.a.errors[r] > 0, c.b.errors[r] > 0];
  if (a === b || calls(c, r, 'a') === 0 || calls(c, r, 'b') === 0) return 0;
  return a ? 1 : 2;
}

/** Rows below which errors begin: in a row that is in both traces, or in one that only one trace has. */
function newErrors(c: Comparison): Uint8Array {
  const below = new Uint8Array(c.rows);
  for (let r = c.rows - 1; r >= 0; r--) {
    const p = c.parent[r];
    const inOne = calls(c, r, 'a') === 0 || calls(c, r, 'b') === 0;
    const own = inOne ? (c.a.errors[r] + c.b.errors[r] > 0 ? 1 : 0) : failing(c, r);
    if (p >= 0 && (own || below[r])) below[p] = 1;
  }
  return below;
}

/** The time that a row adds to the difference by itself. */
function timeImpact(c: Comparison, r: number, bits: number): number {
  const [a, b] = [calls(c, r, 'a'), calls(c, r, 'b')];
  if (bits & (change.onlyA | change.onlyB | change.calls)) return Math.abs(c.a.time[r] - c.b.time[r]);
  if (a === 0 || b === 0) return 0;
  return Math.abs(c.a.own[r] / a - c.b.own[r] / b) * Math.min(a, b);
}

/** Rows by how much of the difference begins in them, largest first. */
export function byImpact(c: Comparison, rows: Iterable<number>): number[] {
  return [...rows].sort((x, y) => c.impact[y] - c.impact[x] || Math.abs(c.a.time[y] - c.b.time[y]) - Math.abs(c.a.time[x] - c.b.time[x]) || x - y);
}

/** Rows that changed, and those above them; or all. In the order of the call paths. */
export function shownRows(c: Comparison, all: boolean): Int32Array {
  const keep = new Uint8Array(c.rows);
  for (let r = c.rows - 1; r >= 0; r--) {
    if (all || c.change[r] !== 0) keep[r] = 1;
    if (keep[r] && c.parent[r] >= 0) keep[c.parent[r]] = 1;
  }
  return Int32Array.from({ length: c.rows }, (_, r) => r).filter((r) => keep[r] === 1);
}
