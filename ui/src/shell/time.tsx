import { slowNow } from './clock';
import { age, date, iso, millis, time } from './format';
import { zone } from './preferences';

/** Whether times from `ms` on are written with their date. */
export const hasDates = (ms: number): boolean => date(ms, zone.value) !== date(slowNow.value, zone.value);

/** A time in the zone of the page, with UTC in its title. `at` is milliseconds or decimal nanoseconds. `withAge` adds the age up to 24 hours, `onlyAge` prefers it. */
export function Time({ at, precision = 2, withAge, onlyAge }: { at: number | string; precision?: 0 | 1 | 2; withAge?: boolean; onlyAge?: boolean }) {
  const ms = typeof at === 'string' ? millis(at) : at;
  const text = time(ms, zone.value, slowNow.value, precision);
  const old = withAge || onlyAge ? age(ms, Math.max(slowNow.value, ms)) : '';
  return <time dateTime={iso(ms)} title={iso(ms)}>{onlyAge && old ? old : text}{withAge && old && ` (${old})`}</time>;
}
