// Positions and labels of the ticks of a time axis.

import { axisDuration, duration, trimmed } from '../../shell/format';
import { t } from '../../shell/text';
import { breaksOn, pixel, type Axis, type Break } from './axis';
import { textWidth } from './labels';

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
export function ticks(from: number, to: number, width: number, space = minSpace): Tick[] {
  if (!(to > from) || width <= 0) return [];
  return ticksEvery(roundStep(((to - from) / width) * space), from, to);
}

function ticksEvery(step: number, from: number, to: number): Tick[] {
  const list: Tick[] = [];
  for (let i = Math.ceil(from / step); i * step <= to; i++) list.push({ at: i * step, label: tickLabel(i * step, step) });
  return list;
}

/** A text of the axis, from `left` pixels on. */
export interface BreakLabel extends Break {
  /** `4 m 53 s idle`, or "" where it would cover another one. */
  label: string;
  labelLeft: number;
}

/** What stands on an axis: ticks in the parts between its breaks, also where a part begins, and how much each break leaves out. */
export function marks(axis: Axis): { ticks: Tick[]; breaks: BreakLabel[] } {
  const breaks = labeled(breaksOn(axis));
  if (breaks.length === 0) return { ticks: ticks(axis.from, axis.to, axis.width), breaks };
  const step = roundStep(minSpace / axis.scale);
  const { from, to } = axis.times;
  const list: Tick[] = [];
  for (let k = 0, begin = axis.from; k <= from.length; begin = to[k++]) {
    const end = Math.min(axis.to, k < from.length ? from[k] : Infinity);
    if (k > 0 && begin > axis.from && begin < end) list.push({ at: begin, label: tickLabel(begin, step / 10) });
    if (begin < end) list.push(...ticksEvery(step, Math.max(begin, axis.from), end));
  }
  return { ticks: apart(list, axis, breaks), breaks };
}

/** Places the labels of breaks in their middle, where they do not cover each other. */
function labeled(breaks: Break[]): BreakLabel[] {
  let free = 0;
  return breaks.map((b) => {
    const label = t('{time} idle', { time: duration(b.time) });
    const width = textWidth(label);
    const labelLeft = Math.max(0, (b.left + b.right - width) / 2);
    if (labelLeft < free) return { ...b, label: '', labelLeft };
    free = labelLeft + width + labelSpace;
    return { ...b, label, labelLeft };
  });
}

/** Ticks whose labels cover neither each other nor those of breaks. */
function apart(list: Tick[], axis: Axis, breaks: BreakLabel[]): Tick[] {
  let free = -Infinity;
  return list.filter((tick) => {
    const left = pixel(axis, tick.at);
    const right = left + tickIndent + textWidth(tick.label) + labelSpace;
    if (left < free || breaks.some((b) => b.label && b.labelLeft < right && b.labelLeft + textWidth(b.label) > left)) return false;
    free = right + labelSpace;
    return true;
  });
}

/** Least pixels between ticks, and between texts. */
const minSpace = 80;
const labelSpace = 8;
/** Pixels from a tick to its text. */
const tickIndent = 5;

const units: [number, string][] = [[1, 'ns'], [1e3, 'µs'], [1e6, 'ms'], [1e9, 's']];

/** Text of a time on an axis, exact enough to tell it from its neighbor `step` nanoseconds away. */
export function tickLabel(at: number, step: number): string {
  if (at >= 60 * second) return longLabel(at, step);
  if (at === 0 || step >= at / 100) return axisDuration(at);
  const [unit, name] = units.findLast(([u]) => at >= u) ?? units[0];
  const digits = Math.max(0, Math.ceil(Math.log10(unit / step)));
  return trimmed(at / unit, digits) + '\u202f' + name;
}

const longUnits: [number, string][] = [[86400, 'd'], [3600, 'h'], [60, 'm'], [1, 's']];

/** `3 h 20 m`, `3 h 20 m 02 s`, `5 m 05.25 s`: two units, or as many as the step needs. */
function longLabel(at: number, step: number): string {
  const digits = step < second ? Math.min(9, Math.max(1, Math.ceil(Math.log10(second / step)))) : 0;
  let rest = Math.round((at / second) * 10 ** digits) / 10 ** digits;
  const first = longUnits.findIndex(([u]) => rest >= u);
  const needed = longUnits.findIndex(([u]) => u * second <= step);
  const last = Math.max(first + 1, needed < 0 ? longUnits.length - 1 : needed);
  return longUnits.slice(first, last + 1).map(([u, name], i) => {
    const whole = Math.floor(rest / u);
    const text = u === 1 ? trimmed(rest, digits) : String(whole);
    rest -= whole * u;
    return `${i > 0 && /^\d([.,]|$)/.test(text) ? '0' : ''}${text}\u202f${name}`;
  }).join(' ');
}
