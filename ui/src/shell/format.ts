// Numbers, durations and times as text: the only place that formats them.

import { decimal, t, thousands } from './text';

/** Narrow no-break space, between a number and its unit. */
const thin = '\u202f';

/** Text for "no value". */
export const none = '\u2013';

/** The text of a number with the decimal sign of the language. */
const local = (text: string): string => text.replace('.', decimal);

/** Formats a number with a fixed number of decimals. */
export const fixed = (x: number, digits: number): string => local(x.toFixed(digits));

/** Formats a number with at most `digits` decimals. */
export const trimmed = (x: number, digits: number): string => local(String(Number(x.toFixed(digits))));

const durationUnits: [number, string][] = [
  [1, 'ns'],
  [1e3, 'µs'],
  [1e6, 'ms'],
  [1e9, 's'],
];

/** Formats nanoseconds with three significant digits: `412 µs`, `9.40 ms`, `1.84 s`, `2 m 05 s`. The server returns 1 ns for spans that do not end after their start: shown as 0. */
export const duration = (ns: number): string => local(plain(ns));

/** Like duration, with a decimal point in every language. */
function plain(ns: number): string {
  if (Math.abs(ns) <= 1) return '0';
  if (ns < 0) return '−' + plain(-ns);
  // 999.6 ms rounds to 1.00 s, and 59.96 s to 1 m 00 s.
  if (ns >= 59.95e9) return longDuration(ns);
  let i = 0;
  while (i < 3 && ns >= 999.5 * durationUnits[i][0]) i++;
  const value = ns / durationUnits[i][0];
  return (i === 0 ? String(Math.round(value)) : significant(value)) + thin + durationUnits[i][1];
}

/** Formats a percentile of the server, which is up to 2 % too low, with two significant digits: `410 µs`, `2.4 s`, `2 m 10 s`. */
export function percentile(ns: number): string {
  if (ns < 1) return '0';
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(ns)) - 1);
  return local(plain(Math.round(ns / unit) * unit).replace(/(\.\d*?)0(?=\D)/, '$1').replace(/\.(?=\D)/, ''));
}

/** Formats the time from one moment to another, both in milliseconds since the epoch, in whole seconds: `7 s`, `2 m 05 s`, `6 d 23 h`. */
export function elapsed(from: number, to: number): string {
  return axisDuration(Math.max(0, Math.floor((to - from) / 1000)) * 1e9);
}

/** Minutes and hours: `40 min`, `3 h 20 min`. */
export function minutes(ns: number): string {
  const all = Math.max(1, Math.round(ns / 60e9));
  const [h, min] = [Math.floor(all / 60), all % 60];
  const parts = [h > 0 && t('{h}{thin}h', { h, thin }), min > 0 && t('{min}{thin}min', { min, thin })];
  return parts.filter(Boolean).join(' ');
}

/** Like duration, without trailing zeros, for axes. */
export function axisDuration(ns: number): string {
  return local(plain(ns).replace(/\.(\d*?)0+(?=\D|$)/, (_, d: string) => (d ? '.' + d : '')));
}

function longDuration(ns: number): string {
  const s = Math.round(ns / 1e9);
  const parts: [number, string][] = [[Math.floor(s / 86400), 'd'], [Math.floor(s / 3600) % 24, 'h'], [Math.floor(s / 60) % 60, 'm'], [s % 60, 's']];
  const first = parts.findIndex(([n]) => n > 0);
  const [[a, u], [b, v]] = first === 3 ? [parts[3], [0, '']] as [number, string][] : [parts[first], parts[first + 1]];
  return v === '' ? `${a}${thin}${u}` : `${a}${thin}${u} ${pad(b)}${thin}${v}`;
}

/** Three significant digits, without exponent: 1.84, 52.3, 520. */
function significant(x: number): string {
  const digits = x < 9.995 ? 2 : x < 99.95 ? 1 : 0;
  return x.toFixed(digits);
}

/** Formats an exact count: `12,431`. */
export function count(n: number): string {
  return Math.round(n).toString().replace(/\B(?=(\d{3})+(?!\d))/g, thousands);
}

/** Formats any number, with at most four significant digits if it is not whole: `0.0312`, `−1,234`. */
export function number(n: number): string {
  const x = Number.isInteger(n) ? n : Number(n.toPrecision(4));
  return (Number.isInteger(x) ? count(x) : local(String(x))).replace('-', '−');
}

/** Says that a formatted number is an estimate, if it is one. */
export const about = (n: string, estimate: boolean): string => (estimate ? t('about {n}', { n }) : n);

/** Formats a count for tables: `1.46k`, `9.24M`. */
export function short(n: number): string {
  if (Math.abs(n) < 999.5) return Number.isInteger(n) ? String(n) : local(significant(n));
  const units: [number, string][] = [[1e3, 'k'], [1e6, 'M'], [1e9, 'G'], [1e12, 'T']];
  let i = 0;
  while (i < units.length - 1 && Math.abs(n) >= 999.5 * units[i][0]) i++;
  return local(significant(n / units[i][0])) + units[i][1];
}

/** Formats a rate per second, without the unit: `207`, `1.18k`, `0.04`. */
export function rate(perSecond: number): string {
  if (perSecond === 0) return '0';
  if (perSecond < 0.01) return local('<0.01');
  return short(perSecond);
}

/** Formats a share from 0 to 1: `6.4 %`, `<0.1 %`, `0`. */
export function share(x: number): string {
  if (x === 0) return '0';
  if (x < 0.001) return local(`<0.1${thin}%`);
  return `${x > 0.9995 ? '100' : fixed(x * 100, 1)}${thin}%`;
}

/** Formats a share in text, where decimals would distract: `61 %`. */
export function percent(x: number): string {
  if (x > 0 && x < 0.005) return `<1${thin}%`;
  return `${Math.round(x * 100)}${thin}%`;
}

/** Formats bytes in decimal units: `41.2 GB`. */
export function bytes(n: number): string {
  if (n < 1000) return `${n}${thin}B`;
  const units = ['kB', 'MB', 'GB', 'TB', 'PB'];
  let i = 0;
  for (n /= 1000; n >= 999.5 && i < units.length - 1; n /= 1000) i++;
  return local(significant(n)) + thin + units[i];
}

/** A time zone for display. */
export type Zone = 'utc' | 'local';

/** Fills a number with zeros. */
export const pad = (n: number | string, width = 2): string => String(n).padStart(width, '0');

/** Fields of a time in a zone. */
function fields(ms: number, zone: Zone) {
  const d = new Date(zone === 'utc' ? ms : ms - new Date(ms).getTimezoneOffset() * 60_000);
  return { y: d.getUTCFullYear(), mo: d.getUTCMonth() + 1, d: d.getUTCDate(), h: d.getUTCHours(), mi: d.getUTCMinutes(), s: d.getUTCSeconds(), ms: d.getUTCMilliseconds() };
}

/** Formats the time of day: `14:22`, `14:22:07`, `14:22:07.318` with 0, 1 or 2 as precision. */
export function clock(ms: number, zone: Zone, precision: 0 | 1 | 2 = 2): string {
  const f = fields(ms, zone);
  let text = `${pad(f.h)}:${pad(f.mi)}`;
  if (precision > 0) text += `:${pad(f.s)}`;
  if (precision > 1) text += decimal + pad(f.ms, 3);
  return text;
}

/** A date in ISO 8601, the same in every language. */
export function isoDate(ms: number, zone: Zone): string {
  const f = fields(ms, zone);
  return `${f.y}-${pad(f.mo)}-${pad(f.d)}`;
}

/** Formats a date: `2026-11-22`. */
export function date(ms: number, zone: Zone): string {
  const f = fields(ms, zone);
  return t('{y}-{m}-{d}', { y: f.y, m: pad(f.mo), d: pad(f.d) });
}

/** Formats a date without its year: `11-22`. */
export function monthDay(ms: number, zone: Zone): string {
  const f = fields(ms, zone);
  return t('{m}-{d}', { m: pad(f.mo), d: pad(f.d) });
}

/** Formats a time, with the date if it is not that of `now`. */
export function time(ms: number, zone: Zone, now: number, precision: 0 | 1 | 2 = 2): string {
  const day = date(ms, zone);
  return (day === date(now, zone) ? '' : day + ' ') + clock(ms, zone, precision);
}

/** Formats an age up to 24 hours: `20 min ago`; older: "". */
export function age(ms: number, now: number): string {
  const s = Math.round((now - ms) / 1000);
  if (s < 0 || s >= 86400) return '';
  if (s < 5) return t('now');
  if (s < 60) return t('{s}{thin}s ago', { s, thin });
  if (s < 3600) return t('{s}{thin}min ago', { s: Math.floor(s / 60), thin });
  return t('{s}{thin}h ago', { s: Math.floor(s / 3600), thin });
}

/** Name of a zone for labels: `UTC` or `UTC+2`. */
export function zoneName(zone: Zone, now: number): string {
  if (zone === 'utc') return 'UTC';
  const minutes = -new Date(now).getTimezoneOffset();
  if (minutes === 0) return 'UTC';
  const m = Math.abs(minutes) % 60;
  return `UTC${minutes < 0 ? '−' : '+'}${Math.floor(Math.abs(minutes) / 60)}${m ? ':' + pad(m) : ''}`;
}

/** Milliseconds since the epoch of a text of decimal nanoseconds. */
export function millis(nanos: string): number {
  return nanos.length > 6 ? Number(nanos.slice(0, -6)) + Number(nanos.slice(-6)) / 1e6 : Number(nanos) / 1e6;
}

/** Text of decimal nanoseconds of milliseconds since the epoch. */
export function nanos(ms: number): string {
  return ms <= 0 ? '0' : String(BigInt(Math.floor(ms)) * 1_000_000n + BigInt(Math.round((ms % 1) * 1e6)));
}

/** ISO 8601 in UTC, for `<time datetime>` and titles. */
export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** First eight characters of an id. */
export function shortID(id: string): string {
  return id.slice(0, 8);
}
