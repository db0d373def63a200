// What is said about a group of errors.

import type { ErrorGroup, Errors } from '../api/errors';
import { count, millis, time, trimmed } from '../shell/format';
import { zone } from '../shell/preferences';
import { t } from '../shell/text';

/** The order of groups: the most frequent first, or those that have grown most. */
export type Order = 'count' | 'growth';

const minute = 60_000;

/** "new since 13:14", "×8 since 13:14", "×8, 13:14 to 13:54", or "" if nothing changed. */
export function trendText(g: ErrorGroup, end: number): string {
  const { kind, factor = 1, since, until } = g.trend;
  if (kind === 'usual' || !since) return '';
  const at = (ns: string): string => time(Math.round(millis(ns) / minute) * minute, zone.value, end, 0);
  const first = at(since);
  const last = until && at(until);
  if (kind === 'new') return last === first ? t('new at {first}', { first }) : last ? t('new, {first} to {last}', { first, last }) : t('new since {first}', { first });
  const times = factorText(factor);
  return last ? t('{times}, {first} to {last}', { times, first, last }) : t('{times} since {first}', { times, first });
}

/** "×8", "×3.4", "over ×100". */
function factorText(factor: number): string {
  if (factor > 100) return t('over ×100');
  return '×' + trimmed(factor, factor < 9.5 ? 1 : 0);
}

/** A number of spans, with "≈" if it is an estimate. */
export function countText(n: number, data: Errors): string {
  return (data.share < 1 ? '≈ ' : '') + count(n);
}

/** The share of the range, from its beginning, that was not counted, or only in a sample. */
export function uncounted(data: Errors, start: number, end: number): number {
  if (data.share < 1) return 1;
  return data.since ? Math.min(1, Math.max(0, (millis(data.since) - start) / Math.max(1, end - start))) : 0;
}

/** What failed, in one text: the type, else the message without its variable parts, else the operation. */
export function titleOf(g: ErrorGroup): string {
  return g.type || g.pattern || g.operation;
}

/** What a group shows below its title. */
export function secondLine(g: ErrorGroup): string {
  if (g.type) return g.message || g.operation;
  return g.pattern ? g.operation : t('no message');
}
