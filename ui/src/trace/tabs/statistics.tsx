import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { count, duration, none, share } from '../../shell/format';
import { Name } from '../../shell/name';
import { ServiceMark } from '../../shell/service-mark';
import { t, tn } from '../../shell/text';
import { navigate, view } from '../../shell/url';
import { groupBy, ranksOf, sortedBy, timeOnPath, totalsOf, type Grouping, type Totals } from '../model/grouping';
import { serviceName } from '../model/span';
import type { TraceModel } from '../model/types';
import { setCursor } from '../moves';
import { Grid, type Column } from './grid';
import { KeyChoice, keyLabel, NotLoaded } from './key-choice';
import { openSpan, useExtras, useKeyValues, useShown, useTraceKeys, valueText, type KeyValues } from './shown';
import type { TabProps } from './tabs';
import css from './tools.module.css';

const standard = ['service', 'name'];

/** Totals of the spans by any one or two keys. A row opens the slowest of its spans. */
export default function Statistics({ state }: TabProps) {
  const model = state.model.value;
  const keys = view.value.by.length > 0 ? view.value.by.slice(0, 2) : standard;
  const attributes = useTraceKeys(state);
  const { columns, retry } = useKeyValues(state, keys);
  const shown = useShown(state);
  const extras = useExtras(state);
  const sort = view.value.sort || '-onPath';
  const [row, setRow] = useState(-1);
  const self = extras?.self ?? null;
  const { groups, totals } = useMemo(() => {
    const made = groupBy(columns, shown);
    return { groups: made, totals: totalsOf(model, made, self ?? new Float64Array(model.spans), timeOnPath(model.path, model.spans)) };
  }, [model, columns, shown, self]);
  const order = useMemo(() => sorted(groups, totals, columns, sort), [groups, totals, sort]);
  const choose = (at: number) => (key: string): void => {
    const next = at === 0 ? [key, ...keys.slice(1)] : [keys[0], key];
    navigate({ by: next.filter((k, i) => k && next.indexOf(k) === i) }, { replace: true });
  };
  return (
    <>
      <div class={css.bar}>
        <span class={css.count}>{tn(order.length, '{n} group', '{n} groups', { n: count(order.length) })}</span>
        <KeyChoice label={t('Group by')} value={keys[0]} attributes={attributes} onChange={choose(0)} />
        <KeyChoice label={t('and')} value={keys[1] ?? ''} none={t('nothing')} attributes={attributes} onChange={choose(1)} />
        <NotLoaded columns={columns} retry={retry} />
      </div>
      <Grid
        label={t('Statistics')} columns={columnsOf(keys)} count={order.length} sort={sort} onSort={(s) => navigate({ sort: s }, { replace: true })} active={row} onActive={setRow}
        cells={(i) => cells(model, keys, columns, groups, totals, order[i], self !== null)} onOpen={(i) => {
          const span = slowest(model, groups, order[i]);
          setCursor(state, span);
          openSpan(state, span);
        }} empty={t('No span passes the filters.')}
      />
    </>
  );
}

function columnsOf(keys: string[]): Column[] {
  const number = (id: keyof Totals, label: string, title?: string, main?: boolean): Column => ({ id, label, title, width: '84px', number: true, main });
  return [
    ...keys.map((key, i) => ({ id: `key${i}`, label: keyLabel(key), title: key, width: 'minmax(92px, 2fr)', main: true })),
    { ...number('count', t('Spans'), undefined, true), width: '52px' },
    number('total', t('Total'), t('Sum of the durations. A span within another span of the group is not counted twice')),
    { ...number('onPath', t('Self, on path'), t('Self time on the critical path'), true), width: 'minmax(84px, 148px)' },
    number('offPath', t('Self, off path'), t('Self time off the critical path')),
    number('p50', 'p50'),
    number('p95', 'p95'),
    { ...number('errors', t('Errors')), width: '64px' },
  ];
}

function sorted(g: Grouping, totals: Totals, columns: KeyValues[], sort: string): Int32Array {
  const all = Int32Array.from({ length: g.offset.length - 1 }, (_, i) => i);
  const [id, down] = [sort.replace(/^-/, ''), sort.startsWith('-')];
  const at = /^key(\d)$/.exec(id)?.[1];
  if (at !== undefined && columns[Number(at)]) {
    const rank = ranksOf(columns[Number(at)].values);
    return sortedBy(all, (i) => rank[g.key[Number(at)][i]] ?? -1, down);
  }
  const by = totals[id as keyof Totals] ?? totals.onPath;
  return sortedBy(all, (i) => by[i], down);
}

function slowest(m: TraceModel, g: Grouping, group: number): number {
  const time = (s: number): number => m.end[s] - m.start[s];
  return g.members.subarray(g.offset[group], g.offset[group + 1]).reduce((a, b) => (time(b) > time(a) ? b : a));
}

function cells(m: TraceModel, keys: string[], columns: KeyValues[], g: Grouping, sums: Totals, i: number, selfKnown: boolean): Record<string, ComponentChildren> {
  const values = keys.map((key, k) => [`key${k}`, key === 'service' ? <ServiceMark name={serviceName(m, g.key[k][i])} /> : <Name class={css.strong} text={valueText(columns[k], g.key[k][i])} />]);
  return {
    ...(Object.fromEntries(values) as Record<string, ComponentChildren>), count: count(sums.count[i]), total: duration(sums.total[i]),
    onPath: <><Meter share={sums.onPath[i] / Math.max(1, m.duration)} /><span>{duration(sums.onPath[i])}</span></>, offPath: selfKnown ? duration(sums.offPath[i]) : '…', p50: duration(sums.p50[i]), p95: duration(sums.p95[i]),
    errors: sums.errors[i] > 0 ? <span class={css.error}>{count(sums.errors[i])}</span> : none,
  };
}

/** Share of the trace as a short bar. */
function Meter({ share: part }: { share: number }) {
  return <span class={css.meter} title={t('{share} of the trace', { share: share(part) })}><span style={{ width: `${Math.min(100, 100 * part)}%` }} /></span>;
}
