import { useEffect, useState } from 'preact/hooks';
import type { Heatmap } from '../../api/types';
import { callsInstead, conditionsOf, removeCondition } from '../../query/edit';
import { isOn, parseQuery } from '../../query/parse';
import { capable } from '../../shell/config';
import { Button } from '../../shell/controls';
import { about, count, iso, millis, nanos } from '../../shell/format';
import { isRelative } from '../../shell/range';
import { Empty } from '../../shell/states';
import { t, tn } from '../../shell/text';
import { lastName } from '../../shell/time-input';
import { link, navigate, view, type Range } from '../../shell/url';
import { useRequest } from '../../shell/use-request';
import type { Run } from './run';
import css from './no-match.module.css';

const hour = 3_600_000;
const maxConditions = 4;

/** A way out of an empty result, and the number of spans that it would find. */
interface Way {
  label: string;
  q: string;
  from: number;
  to: number;
  go: (found: Heatmap | undefined) => void;
  /** It leads to the spans that were counted. */
  counted?: boolean;
}

/** Nothing matches: a longer time range, one condition less, or calls to a service, each with what it would give. */
export default function NoMatch({ run, onRun }: { run: Run; onRun: (text: string) => void }) {
  const fewer = fewerConditions(run, onRun);
  const ways = [...widerRanges(run), ...fewer, ...callsOfServices(run, onRun)];
  const [counts, setCounts] = useState<Record<string, number>>({});
  const none = ways.length > 0 && ways.every((w) => counts[w.label] === 0);
  return (
    <div class={css.empty}>
      <Empty title={run.q ? t('No trace matches in this time range.') : t('No traces in this time range.')}>
        {ways.map((w) => <WayOut key={w.label} way={w} onCount={(n) => setCounts((c) => ({ ...c, [w.label]: n }))} />)}
        {none && <span>{fewer.length > 0 ? t('A longer time range or one fewer condition finds nothing either.') : t('There are none in a longer time range either.')}</span>}
        {none && run.q && <Button onClick={() => onRun('')}>{t('Show all traces')}</Button>}
        {!run.q && <a href={link({ page: 'overview' })}>{t('How to send spans')}</a>}
      </Empty>
    </div>
  );
}

/** Longer time ranges than that of a search. */
export function widerRanges(run: Run): Way[] {
  const { range } = view.value;
  const wider: [string, number, Range][] = isRelative(range)
    ? [[lastName('24h'), run.to - 24 * hour, { from: 'now-24h', to: 'now' }], [lastName('7d'), run.to - 168 * hour, { from: 'now-7d', to: 'now' }]]
    : [[lastName('7d'), Date.now() - 168 * hour, { from: 'now-7d', to: 'now' }]];
  const ways = wider.filter(([, from]) => from < run.from || !isRelative(range)).map(([label, from, r]): Way =>
    ({ label, q: run.q, from, to: isRelative(range) ? run.to : Date.now(), go: () => navigate({ range: r, sel: null }) }));
  if (!capable('aggregates')) return ways;
  // Spans can be older than any of these ranges: they arrived late, or were loaded from a file.
  return [...ways, { label: t('All stored spans'), q: run.q, from: 0, to: Math.max(run.to, Date.now()), counted: true, go: (found) => navigate({ range: usedRange(found!), sel: null }) }];
}

/** The time from the first to the last counted span, in whole columns. */
export function usedRange(found: Pick<Heatmap, 'start' | 'step' | 'cells'>): Range {
  const at = (column: number): string => iso(Math.round(millis(found.start) + (column * found.step) / 1e6));
  return { from: at(found.cells.column[0]), to: at(found.cells.column.at(-1)! + 1) };
}

function fewerConditions(run: Run, onRun: (text: string) => void): Way[] {
  const q = parseQuery(run.q);
  const conditions = (q && conditionsOf(q)) ?? [];
  return conditions.slice(0, maxConditions).map((c) => {
    const without = removeCondition(run.q, c);
    const label = isOn(c, 'service') ? t('All services') : t('Without {condition}', { condition: run.q.slice(c.begin, c.end) });
    return { label, q: without, from: run.from, to: run.to, go: () => onRun(without) };
  });
}

/** Databases and queues have no spans of their own, but calls. */
function callsOfServices(run: Run, onRun: (text: string) => void): Way[] {
  const q = callsInstead(run.q);
  return q === run.q ? [] : [{ label: t('Calls to this service'), q, from: run.from, to: run.to, go: () => onRun(q) }];
}

/** Ways that lead to nothing are not shown. */
function WayOut({ way, onCount }: { way: Way; onCount: (n: number) => void }) {
  const { data, messages } = useRequest<Heatmap>(capable('aggregates') ? 'heatmap' : null,
    { q: way.q, start: nanos(way.from), end: nanos(way.to), of: 'spans', columns: 400, exemplars: 1 }, { maxAge: 60_000 });
  const sampled = !!data && (data.share < 1 || messages.length > 0);
  const n = sampled && data.estimatedSpans === 0 ? undefined : data?.estimatedSpans; // a sample may have missed all
  useEffect(() => { if (n !== undefined) onCount(n); }, [n]);
  if (n === 0 || (way.counted && data?.cells.column.length === 0)) return null;
  return <Button disabled={way.counted && !data} onClick={() => way.go(data)}><span class={css.label}>{way.label}</span>{n !== undefined && <span class={css.count}>{tn(n, '{n} span', '{n} spans', { n: about(count(n), sampled) })}</span>}</Button>;
}
