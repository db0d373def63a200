import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { count, duration, none } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { Name } from '../../shell/name';
import { ServiceMark } from '../../shell/service-mark';
import { t, tn } from '../../shell/text';
import { navigate, view } from '../../shell/url';
import { groupBy, ranksOf, sortedBy, timeOnPath, totalsOf, type Grouping, type Totals } from '../model/grouping';
import { kindOf, operation, serviceName, shownService } from '../model/span';
import { flag, type TraceModel } from '../model/types';
import { setCursor } from '../moves';
import type { TraceState } from '../state';
import { Grid, type Column, type RowState } from './grid';
import { KeyChoice, NotLoaded } from './key-choice';
import { openSpan, useExtras, useKeyValues, useShown, useTraceKeys, valueText, type KeyValues } from './shown';
import type { TabProps } from './tabs';
import css from './tools.module.css';

/** The spans as a table: sorted by any column, grouped by any key. Pinned attributes are columns. */
export default function Table({ state }: TabProps) {
  const attributes = useTraceKeys(state);
  const by = view.value.by[0] ?? '';
  const pins = state.pins.value.map((key) => attributes.find((a) => a === `span.${key}`) ?? attributes.find((a) => a === `resource.${key}`) ?? `span.${key}`);
  const { columns: values, retry } = useKeyValues(state, by ? [by, ...pins] : pins);
  const pinned = useMemo(() => (by ? values.slice(1) : values), [values, by]);
  const data = useData(state, by ? values[0] : null, pins, pinned);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [group, setGroup] = useState(-1); // with the cursor
  const rows = useMemo(() => rowsOf(data, open), [data, open]);
  const active = group >= 0 && data.groups ? rows.indexOf(~group) : state.active.value === null ? -1 : rows.indexOf(state.active.value);
  const toggle = (g: number): void => {
    const next = new Set(open);
    const name = data.label(g);
    if (!next.delete(name)) next.add(name);
    setOpen(next);
  };
  const move = (i: number): void => {
    setGroup(rows[i] < 0 ? ~rows[i] : -1);
    if (rows[i] >= 0) setCursor(state, rows[i]);
  };
  const arrow = (i: number, right: boolean): void => {
    if (rows[i] < 0 && open.has(data.label(~rows[i])) !== right) toggle(~rows[i]);
    else if (rows[i] >= 0 && !right && data.groups) move(rows.subarray(0, i).findLastIndex((r) => r < 0));
  };
  const stateOf = (i: number): RowState => (rows[i] < 0
    ? { level: 1, expanded: open.has(data.label(~rows[i])) }
    : { level: data.groups ? 2 : undefined, selected: rows[i] === state.selected.value, faint: state.matches.value !== null && !state.matches.value.has(rows[i]) });
  return (
    <>
      <div class={css.bar}>
        <span class={css.count}>{tn(data.spans, '{n} span', '{n} spans', { n: count(data.spans) })}{data.groups && `, ${tn(data.groups.offset.length - 1, '{n} group', '{n} groups', { n: count(data.groups.offset.length - 1) })}`}</span>
        <KeyChoice label={t('Group by')} value={by} none={t('nothing')} attributes={attributes} onChange={(key) => navigate({ by: key ? [key] : [] }, { replace: true })} />
        <NotLoaded columns={values} retry={retry} />
      </div>
      <Grid
        label={t('Table of spans')} columns={columnsOf(pins)} count={rows.length} sort={data.sort} onSort={(sort) => navigate({ sort }, { replace: true })} active={active} goal={state.goal.value}
        cells={(i) => (rows[i] < 0 ? groupCells(data, ~rows[i]) : spanCells(state, data, rows[i], pins, pinned))} stateOf={stateOf}
        onActive={move} onOpen={(i) => (rows[i] < 0 ? toggle(~rows[i]) : openSpan(state, rows[i]))} onArrow={data.groups ? arrow : undefined} empty={t('No span passes the filters.')}
      />
    </>
  );
}

function columnsOf(pins: string[]): Column[] {
  return [
    { id: 'span', label: t('Service and operation'), width: 'minmax(160px, 3fr)', main: true },
    { id: 'kind', label: t('Kind'), width: '72px' },
    ...pins.map((key) => ({ id: key, label: key.slice(key.lastIndexOf('.') + 1), title: key, width: 'minmax(80px, 1fr)' })),
    { id: 'start', label: t('Start'), width: '84px', number: true },
    { id: 'duration', label: t('Duration'), width: '84px', number: true, main: true },
    { id: 'self', label: t('Self time'), title: t('Time that no child covers'), width: '84px', number: true },
    { id: 'path', label: t('On the path'), title: t('Self time on the critical path'), width: '84px', number: true },
    { id: 'events', label: t('Events'), width: '56px', number: true },
  ];
}

interface Data {
  spans: number;
  sort: string;
  /** Spans in order, if they are not grouped. */
  order: Int32Array;
  groups: Grouping | null;
  /** Groups in order. */
  groupOrder: Int32Array;
  totals: Totals | null;
  self: Float64Array | null;
  onPath: Float64Array;
  label: (group: number) => string;
}

/** Sorted spans or groups. */
function useData(state: TraceState, by: KeyValues | null, pins: string[], pinned: KeyValues[]): Data {
  const model = state.model.value;
  const shown = useShown(state);
  const extras = useExtras(state);
  const sort = view.value.sort || 'start';
  return useMemo(() => {
    const onPath = timeOnPath(model.path, model.spans);
    const self = extras?.self ?? null;
    const [id, down] = [sort.replace(/^-/, ''), sort.startsWith('-')];
    const key = sortKey(model, id, self, onPath, pins, pinned);
    const order = sortedBy(shown, key, down);
    const groups = by && groupBy([by], order);
    const totals = groups && totalsOf(model, groups, self ?? new Float64Array(model.spans), onPath);
    const label = (g: number): string => (groups ? valueText(by!, groups.key[0][g]) : '');
    const groupOrder = groups ? sortedGroups(groups, totals!, id, down, label) : new Int32Array(0);
    return { spans: shown.length, sort, order, groups, groupOrder, totals, self, onPath, label };
  }, [model, shown, extras, sort, by, pinned]);
}

/** Groups by their totals; by what only spans have, in the order of their first spans. */
function sortedGroups(groups: Grouping, totals: Totals, id: string, down: boolean, label: (g: number) => string): Int32Array {
  const all = Int32Array.from({ length: groups.offset.length - 1 }, (_, g) => g);
  const sums: Record<string, Float64Array> = { duration: totals.total, path: totals.onPath, self: totals.onPath.map((x, g) => x + totals.offPath[g]) };
  if (sums[id]) return sortedBy(all, (g) => sums[id][g], down);
  if (id !== 'span') return all;
  const rank = ranksOf([...all].map(label));
  return sortedBy(all, (g) => rank[g], down);
}

/** The number by which a column sorts spans. */
function sortKey(m: TraceModel, id: string, self: Float64Array | null, onPath: Float64Array, pins: string[], pinned: KeyValues[]): (span: number) => number {
  switch (id) {
    case 'span': {
      const [services, names] = [ranksOf(m.services), ranksOf(m.names)];
      return (s) => services[shownService(m, s)] * m.names.length + names[m.name[s]];
    }
    case 'kind': return (s) => m.kind[s];
    case 'duration': return (s) => m.end[s] - m.start[s];
    case 'self': return (s) => self?.[s] ?? 0;
    case 'path': return (s) => onPath[s];
    case 'events': return (s) => m.eventFirst[s + 1] - m.eventFirst[s];
  }
  const column = pinned[pins.indexOf(id)];
  if (!column) return (s) => m.start[s];
  const numbers = column.values.map(Number);
  if (numbers.every(Number.isFinite)) return (s) => (column.value[s] < 0 ? -Infinity : numbers[column.value[s]]);
  const ranks = ranksOf(column.values);
  return (s) => (column.value[s] < 0 ? -1 : ranks[column.value[s]]);
}

/** Rows: spans, or ~group followed by its spans if it is open. */
function rowsOf(d: Data, open: ReadonlySet<string>): Int32Array {
  if (!d.groups) return d.order;
  const rows: number[] = [];
  for (const g of d.groupOrder) {
    rows.push(~g);
    if (open.has(d.label(g))) for (const span of d.groups.members.subarray(d.groups.offset[g], d.groups.offset[g + 1])) rows.push(span);
  }
  return Int32Array.from(rows);
}

function groupCells(d: Data, g: number): Record<string, ComponentChildren> {
  const sums = d.totals!;
  return {
    span: <><span>{d.label(g)}</span><span class={css.faint}>×{count(sums.count[g])}</span>{sums.errors[g] > 0 && <span class={css.error}>{tn(sums.errors[g], '{n} error', '{n} errors', { n: count(sums.errors[g]) })}</span>}</>,
    duration: duration(sums.total[g]), self: d.self ? duration(sums.onPath[g] + sums.offPath[g]) : '…', path: duration(sums.onPath[g]),
  };
}

function spanCells(state: TraceState, d: Data, s: number, pins: string[], pinned: KeyValues[]): Record<string, ComponentChildren> {
  const m = state.model.value;
  const events = m.eventFirst[s + 1] - m.eventFirst[s];
  return {
    span: <>{(m.flags[s] & flag.error) !== 0 && <Mark kind="error" size={12} />}<ServiceMark name={serviceName(m, shownService(m, s))} inferred={m.peer[s] >= 0} /><Name class={css.strong} text={operation(m, s)} cut={state.cut(operation(m, s))} /></>,
    kind: kindOf(m, s), start: `+${duration(m.start[s])}`, duration: duration(m.end[s] - m.start[s]), self: d.self ? duration(d.self[s]) : '…', path: d.onPath[s] > 0 ? duration(d.onPath[s]) : none,
    events: events > 0 ? count(events) : '', ...Object.fromEntries(pins.map((key, i) => [key, <span class={css.mono}>{valueText(pinned[i], pinned[i].value[s])}</span>])),
  };
}

