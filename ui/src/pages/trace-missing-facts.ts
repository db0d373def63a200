// What is known about a trace that is not stored. Pure functions.

import type { Ingest } from '../api/types';
import { count, duration, elapsed, millis, time } from '../shell/format';
import type { MarkKind } from '../shell/icons';
import { zone } from '../shell/preferences';
import { t, tn } from '../shell/text';

/** One thing that is known, and how much it explains: an error alone is the reason. */
export interface Fact {
  mark: MarkKind;
  text: string;
}

const long = 32;
const short = 16;

/** What is unusual about the form of an id, or null. */
export function formFact(id: string): Fact | null {
  const others = [...new Set(id.replace(/[0-9a-f]/gi, ''))];
  if (others.length > 0) return { mark: 'error', text: t('This is not a trace ID. It may contain only the hexadecimal digits 0 to 9 and a to f, not {characters}.', { characters: others.map((c) => `“${c}”`).join(', ') }) };
  if (/^0*$/.test(id)) return { mark: 'error', text: t('An ID of only zeros is invalid: the program did not record this trace.') };
  if (id.length === long) return null;
  if (id.length === short) return { mark: 'partial', text: t('The ID has 16 digits. If the spans have a 32-digit ID that ends with these digits, search for that ID.') };
  return { mark: 'warn', text: tn(id.length, 'The ID has {n} digit, but trace IDs have 32, or 16: digits are missing, or were added.', 'The ID has {n} digits, but trace IDs have 32, or 16: digits are missing, or were added.') };
}

/** Digits from which on a part of an id says something. */
const minPart = 8;

/** The digits of an ID that say something: all IDs of 64 bits begin with zeros, or are shown without them. */
const withoutZeros = (id: string): string => id.toLowerCase().replace(/^0+/, '');

/** Whether an id can be another one with a mistake: up to two digits next to each other differ, were lost, added or swapped, or a part is missing. */
export function isNear(a: string, b: string): boolean {
  const [x, y] = [withoutZeros(a), withoutZeros(b)];
  if (x === y) return false;
  const [less, more] = x.length < y.length ? [x, y] : [y, x];
  if (less.length >= minPart && less.length < more.length && (more.startsWith(less) || more.endsWith(less))) return true;
  let begin = 0;
  while (begin < less.length && less[begin] === more[begin]) begin++;
  let end = 0;
  while (end < less.length - begin && less.at(-1 - end) === more.at(-1 - end)) end++;
  return less.length >= minPart && more.length - begin - end <= 2;
}

/** A search for the traces whose ids can be near an id, and few others: the first or the last half is the same. '' if no id can be near it. */
export function nearQuery(id: string): string {
  const digits = withoutZeros(id);
  if (digits.length < minPart || /[^0-9a-f]/.test(digits)) return '';
  const half = Math.floor(digits.length / 2) - 1;
  return `{ trace:id =~ "0*${digits.slice(0, half)}.*|.*${digits.slice(-half)}" }`;
}

/** Whether spans arrive here, and whether some were lost. */
export function arrivalFact(i: Ingest): Fact {
  const since = time(millis(i.since), zone.value, millis(i.now), 0);
  if (!i.receives) return { mark: 'partial', text: t('This process receives no spans itself: the Status page shows what other processes refused or dropped.') };
  if (i.received === 0) return { mark: 'warn', text: t('No span has arrived since this process started, at {since}: check the address that the program sends to.', { since }) };
  const numbers = { received: count(i.received), refused: count(i.refused), dropped: count(i.dropped), since };
  if (i.refused + i.dropped > 0) return { mark: 'warn', text: t('Spans since {since}: {received} received, {refused} refused, {dropped} dropped. The trace\'s spans may be among them.', numbers) };
  return { mark: 'partial', text: t('Spans received since {since}: {received}. None was refused or dropped: a trace sent to this process since then was accepted.', numbers) };
}

/** Whether the trace can have been deleted because of its age. */
export function ageFact(i: Ingest, now: number): Fact {
  const kept = i.retention > 0 ? t('Spans are kept for {time}.', { time: duration(i.retention) }) : '';
  if (!i.oldestStart) return { mark: 'partial', text: kept || t('The retention is not known here.') };
  const oldest = t('The oldest stored span started {age} ago: older traces are no longer stored.', { age: elapsed(millis(i.oldestStart), now) });
  return { mark: 'partial', text: [oldest, kept].filter(Boolean).join(' ') };
}
