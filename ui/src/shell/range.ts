import { iso } from './format';
import type { Range } from './url';

const units: Record<string, number> = { s: 1e3, m: 60e3, h: 3600e3, d: 86400e3, w: 7 * 86400e3 };

/** Milliseconds since the epoch of one end of a range, or null if the text is not valid. */
export function resolveTime(text: string, now: number): number | null {
  if (text === 'now') return now;
  const relative = /^now-(\d{1,6})([smhdw])$/.exec(text);
  if (relative) return now - Number(relative[1]) * units[relative[2]];
  const absolute = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(/[zZ]|[+-]\d\d:?\d\d$/.test(text) ? text : text + 'Z') : NaN;
  return Number.isNaN(absolute) ? null : absolute;
}

/** A range as milliseconds since the epoch; the default range if an end is not valid or the order is wrong. */
export function resolveRange(r: Range, now: number): { from: number; to: number } {
  const [from, to] = [resolveTime(r.from, now), resolveTime(r.to, now)];
  return from === null || to === null || from >= to ? { from: now - units.h, to: now } : { from, to };
}

/** Whether the range moves with the clock. */
export function isRelative(r: Range): boolean {
  return r.to === 'now';
}

/** The range that a range is now: a link with it shows the same later. */
export function fixedRange(r: Range): Range {
  const { from, to } = resolveRange(r, Date.now());
  return { from: iso(from), to: iso(to) };
}
