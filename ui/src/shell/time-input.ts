// What users type into the time picker.

import { clock, date, isoDate, pad, type Zone } from './format';
import { isRelative, resolveRange, resolveTime } from './range';
import { t, tn } from './text';
import type { Range } from './url';

/** Ranges that end now, in the order of the picker. */
export const presets = ['5m', '15m', '30m', '1h', '3h', '6h', '12h', '24h', '2d', '7d'];

/** Name of a span that ends now, such as `1h`: `Last 1 hour`, `Last 15 minutes`. */
export function lastName(span: string): string {
  const n = parseInt(span);
  switch (span.at(-1)) {
    case 's': return tn(n, 'Last {n} second', 'Last {n} seconds');
    case 'm': return tn(n, 'Last {n} minute', 'Last {n} minutes');
    case 'h': return tn(n, 'Last {n} hour', 'Last {n} hours');
    case 'd': return tn(n, 'Last {n} day', 'Last {n} days');
    default: return tn(n, 'Last {n} week', 'Last {n} weeks');
  }
}

/** A name as it is within a sentence. */
export function lowerFirst(name: string): string {
  return name[0].toLowerCase() + name.slice(1);
}

/** Reads a span: `45m`, `90 min`, `2 days`, `now-3h`, `last 2 hours`; result as `45m`, or null. */
export function parseSpan(text: string): string | null {
  const m = /^(?:now\s*-|last\s)?\s*(\d{1,5})\s*(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)$/i.exec(text.trim());
  return m && Number(m[1]) > 0 ? `${Number(m[1])}${m[2][0].toLowerCase()}` : null;
}

/**
 * Reads a point in time, as milliseconds since the epoch, or null: `14:06`, `14:06:30` (today), `2026-11-22`, `2026-11-22 14:06`, ISO 8601 with a zone,
 * `22.11.2026 14:06`, `now`, `now-2h`, or seconds, milliseconds, microseconds or nanoseconds since the epoch. Without a zone, `zone` applies.
 */
export function parseInstant(text: string, zone: Zone, now: number): number | null {
  const trimmed = text.trim().replace(/^(\d\d?)\.(\d\d?)\.(\d{4})/, (_, d: string, m: string, y: string) => `${y}-${pad(m)}-${pad(d)}`);
  const relative = resolveTime(trimmed.replace(/\s+/g, ''), now);
  if (trimmed.startsWith('now')) return relative;
  if (/^\d{9,19}$/.test(trimmed)) return fromEpoch(trimmed);
  if (/^\d{4}-\d\d-\d\d[T ].*([zZ]|[+-]\d\d:?\d\d)$/.test(trimmed)) return finite(Date.parse(trimmed.replace(' ', 'T')));
  const m = /^(?:(\d{4}-\d\d-\d\d)(?:[T ]+|$))?(?:(\d{1,2}):(\d\d)(?::(\d\d)([.,]\d{1,9})?)?)?$/.exec(trimmed);
  if (!m || (!m[1] && !m[2])) return null;
  const [h, min, s] = [m[2], m[3], m[4]].map((x) => Number(x ?? 0));
  if (h > 23 || min > 59 || s > 59) return null;
  const day = m[1] ?? isoDate(now, zone);
  const ms = Date.parse(`${day}T${[h, min, s].map((n) => pad(n)).join(':')}${zone === 'utc' ? 'Z' : ''}`);
  return finite(Number.isNaN(ms) ? ms : ms + Math.round(Number((m[5] ?? '0').replace(',', '.')) * 1000));
}

function finite(ms: number): number | null {
  return Number.isNaN(ms) ? null : ms;
}

/** The number of digits tells the unit. */
function fromEpoch(digits: string): number {
  const unit = digits.length <= 11 ? 1e3 : digits.length <= 14 ? 1 : digits.length <= 17 ? 1e-3 : 1e-6;
  return Math.floor(Number(digits) * unit);
}

/** Result of reading two ends. */
export type ParsedRange = { range: Range } | { field: 'from' | 'to'; error: string };

/** Reads the two fields of an absolute range. An empty end, or `now`, stays relative. */
export function parseRange(from: string, to: string, zone: Zone, now: number): ParsedRange {
  const start = parseInstant(from, zone, now);
  if (start === null) return { field: 'from', error: t('Enter a time such as 14:06 or 2026-11-22 14:06.') };
  const open = ['', 'now', t('now')].includes(to.trim());
  const end = open ? now : parseInstant(to, zone, now);
  if (end === null) return { field: 'to', error: t('Enter a time such as 14:42, or now.') };
  if (end <= start) return { field: 'to', error: t('The end must be after the start.') };
  const iso = (ms: number, text: string): string => (/^now(-|$)/.test(text.trim()) ? text.replace(/\s+/g, '') : new Date(ms).toISOString());
  return { range: { from: iso(start, from), to: open ? 'now' : iso(end, to) } };
}

/** Text of one end of a range for its field. */
export function instantText(end: string, zone: Zone, now: number): string {
  if (end.startsWith('now')) return end;
  const ms = resolveTime(end, now);
  if (ms === null) return end;
  const seconds = ms % 60_000 === 0 ? 0 : ms % 1000 === 0 ? 1 : 2;
  return `${date(ms, zone)} ${clock(ms, zone, seconds)}`;
}

/** Name of a range: `Last 1 hour`, `14:06 to 14:42`, `2026-11-21 14:06 to 2026-11-22 09:00`. */
export function rangeName(range: Range, zone: Zone, now: number): string {
  const span = /^now-(\d+[smhdw])$/.exec(range.from);
  if (isRelative(range) && span) return lastName(span[1]);
  const [from, to] = [resolveTime(range.from, now), resolveTime(range.to, now)];
  if (from === null || to === null) return lastName('1h');
  const today = date(now, zone);
  const sameDay = date(from, zone) === date(to, zone);
  const showDay = !sameDay || date(from, zone) !== today;
  const text = (ms: number, withDay: boolean): string => `${withDay ? date(ms, zone) + ' ' : ''}${clock(ms, zone, ms % 60_000 ? 1 : 0)}`;
  return t('{from} to {range}', { from: text(from, showDay), range: isRelative(range) ? t('now') : text(to, !sameDay) });
}

/** Short name of a range for narrow windows: `1 h`, `14:06`. */
export function shortRangeName(range: Range, zone: Zone, now: number): string {
  const span = /^now-(\d+)([smhdw])$/.exec(range.from);
  if (isRelative(range) && span) return `${span[1]} ${span[2] === 'm' ? 'min' : span[2]}`;
  const from = resolveTime(range.from, now);
  return from === null ? '1 h' : clock(from, zone, 0);
}

/** Moves a range by its own length: -1 earlier, 1 later (not beyond now); 0 doubles it, with the same end if it is now, else around its middle. */
export function shiftRange(range: Range, direction: -1 | 0 | 1, now: number): Range {
  const { from, to } = resolveRange(range, now);
  const length = to - from;
  const iso = (ms: number): string => new Date(ms).toISOString();
  if (direction === 0) {
    if (isRelative(range)) return { from: /^now-/.test(range.from) ? doubled(range.from) : iso(from - length), to: 'now' };
    return { from: iso(from - length / 2), to: iso(Math.min(now, to + length / 2)) };
  }
  const end = Math.min(now, to + direction * length);
  return { from: iso(end - length), to: iso(end) };
}

function doubled(from: string): string {
  return from.replace(/\d+/, (n) => String(Number(n) * 2));
}
