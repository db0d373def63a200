// Positions and labels of the ticks of a time axis.

import { axisDuration } from '../../shell/format';

/** A mark on the time axis, in nanoseconds after the start of the trace. */
export interface Tick {
  at: number;
  label: string;
}

const second = 1e9;
/** Steps above one second, where decimal steps are hard to read. */
const longSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400].map((s) => s * second);

/** The smallest round step in nanoseconds that is at least `least`. */
export function roundStep(least: number): number {
  if (least > second) return longSteps.find((s) => s >= least) ?? Math.ceil(least / (86400 * second)) * 86400 * second;
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  const factor = [1, 2, 2.5, 5, 10].find((f) => f * power >= least - 1e-9 && (power > 1 || Number.isInteger(f)));
  return (factor ?? 10) * power;
}

/** Ticks between `from` and `to` nanoseconds, at least `space` pixels apart on an axis of `width` pixels. */
export function ticks(from: number, to: number, width: number, space = 80): Tick[] {
  if (!(to > from) || width <= 0) return [];
  const step = roundStep(((to - from) / width) * space);
  const list: Tick[] = [];
  for (let i = Math.ceil(from / step); i * step <= to; i++) list.push({ at: i * step, label: tickLabel(i * step, step) });
  return list;
}

const units: [number, string][] = [[1, 'ns'], [1e3, 'µs'], [1e6, 'ms'], [1e9, 's']];

/** Text of a time on an axis, exact enough to tell it from its neighbour `step` nanoseconds away. */
export function tickLabel(at: number, step: number): string {
  if (at === 0 || at >= 60 * second || step >= at / 100) return axisDuration(at);
  const [unit, name] = units.findLast(([u]) => at >= u) ?? units[0];
  const digits = Math.max(0, Math.ceil(Math.log10(unit / step)));
  const text = (at / unit).toFixed(digits);
  return (digits > 0 ? text.replace(/\.?0+$/, '') : text) + '\u202f' + name;
}
