// The table of measures that is printed at the end.

import { loadavg } from 'node:os';

const rows: string[][] = [];

/** Median of numbers. */
export function median(values: number[]): number {
  return quantile(values, 0.5);
}

/** The value that a share of the values does not exceed. */
export function quantile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))];
}

/** Adds a row: what was measured, its budget, and one value for each run. */
export function report(name: string, budget: string, unit: string, values: number[]): void {
  const digits = values.every((v) => v >= 100 || Number.isInteger(v)) ? 0 : 1;
  const text = (n: number): string => n.toFixed(digits);
  rows.push([name, budget, text(Math.min(...values)), text(median(values)), text(Math.max(...values)), unit, String(values.length), loadavg()[0].toFixed(1)]);
}

/** Prints the table. */
export function printTable(): void {
  const all = [['measure', 'budget', 'minimum', 'median', 'maximum', 'unit', 'runs', 'load'], ...rows];
  const widths = all[0].map((_, i) => Math.max(...all.map((row) => row[i].length)));
  const right = [2, 3, 4, 6, 7];
  console.log(all.map((row) => row.map((cell, i) => (right.includes(i) ? cell.padStart(widths[i]) : cell.padEnd(widths[i]))).join('  ').trimEnd()).join('\n'));
}
