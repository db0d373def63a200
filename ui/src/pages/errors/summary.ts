// What the page says about all errors.

import type { ErrorGroup, Errors } from '../../api/errors';
import { trendOf } from '../../errors/trend';
import { count } from '../../shell/format';
import { t, tn } from '../../shell/text';

/** The services with errors, those with the most first. */
export function servicesOf(groups: ErrorGroup[]): { name: string; count: number }[] {
  const counts = new Map<string, number>();
  for (const g of groups) counts.set(g.service, (counts.get(g.service) ?? 0) + g.count);
  return [...counts].map(([name, n]) => ({ name, count: n })).sort((a, b) => b.count - a.count || a.name.localeCompare(b.name));
}

/** The first line of the page. */
export function summaryOf(data: Errors, start: number, end: number): string {
  const n = data.groups.length + data.omitted;
  if (n === 0) return t('No span failed');
  const fresh = data.groups.filter((g) => trendOf(g, data, start, end) === 'new').length;
  const [first] = servicesOf(data.groups);
  const all = tn(n, '{n} kind of error', '{n} kinds of errors', { n: count(n) });
  return fresh > 0 ? t('{all}, {fresh} of them new, most in {service}', { all, fresh: count(fresh), service: first.name }) : t('{all}, none of them new, most in {service}', { all, service: first.name });
}
