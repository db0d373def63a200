// What the page says about all errors.

import type { ErrorGroup, Errors } from '../../api/errors';
import { countText } from '../../errors/trend';
import { count } from '../../shell/format';
import { t, tn } from '../../shell/text';

/** The services with errors, those with the most first. */
export function servicesOf(groups: ErrorGroup[]): { name: string; count: number }[] {
  const counts = new Map<string, number>();
  for (const g of groups) counts.set(g.service, (counts.get(g.service) ?? 0) + g.count);
  return [...counts].map(([name, n]) => ({ name, count: n })).sort((a, b) => b.count - a.count || a.name.localeCompare(b.name));
}

/** The first line of the page. */
export function summaryOf(data: Errors): string {
  const n = data.groups.length + data.omitted;
  if (n === 0) return t('No span failed');
  const changing = data.groups.filter((g) => g.trend.kind !== 'usual');
  const ended = changing.filter((g) => g.trend.until).length;
  const fresh = changing.filter((g) => g.trend.kind === 'new' && !g.trend.until).length;
  const growing = changing.length - ended - fresh;
  const [first] = servicesOf(data.groups);
  const spans = tn(data.spans, '{n} failed span', '{n} failed spans', { n: countText(data.spans, data) });
  const all = tn(n, '{spans} of {n} kind', '{spans} of {n} kinds', { spans, n: count(n) });
  const changed = [fresh > 0 && t('{n} new', { n: count(fresh) }), growing > 0 && t('{n} growing', { n: count(growing) }), ended > 0 && t('{n} rose and ended', { n: count(ended) })].filter(Boolean).join(', ');
  return changed ? t('{all}: {changed}; most in {service}', { all, changed, service: first.name }) : t('{all}, none new; most in {service}', { all, service: first.name });
}
