// Series of a metrics query as lines and rows.

import { canonical } from '../../../query/field';
import type { MetricsQuery } from '../../../query/metrics';
import { duration, number, percent } from '../../../shell/format';
import { serviceColor } from '../../../shell/service-color';
import { t } from '../../../shell/text';
import type { Run } from '../run';
import { secondsOf } from '../step';

interface Label {
  key: string;
  value: { stringValue?: string; intValue?: string; doubleValue?: number; boolValue?: boolean };
}

/** The answer of `/tempo/api/metrics/query_range` and `query`. Values of 0 are left out. */
export interface SeriesAnswer {
  series: {
    labels: Label[];
    samples?: { timestampMs: string; value?: number }[];
    /** The only sample, in answers of `query`. */
    value?: number;
    exemplars?: { labels: Label[]; timestampMs: string; value?: number }[];
  }[];
  /** Why the answer is not complete. */
  message?: string;
}

/** An example of the spans of a series. Times are milliseconds since the epoch. */
export interface Example {
  trace: string;
  at: number;
  value: number;
}

/** One series. A value of null means that there is no sample. */
export interface Series {
  name: string;
  /** All labels, as in searches. */
  title: string;
  values: (number | null)[];
  color: string;
  examples: Example[];
  /** A number for each column of the table. */
  figures: number[];
}

/** A column of numbers in the table. */
export interface Column {
  label: string;
  format: (n: number) => string;
}

/** Series at the same times, sorted by the last column, the largest first. */
export interface SeriesData {
  /** Milliseconds since the epoch: the beginnings of the steps, and the end of the last one. */
  times: number[];
  end: number;
  list: Series[];
  columns: Column[];
}

const colors = 23;
const stride = 7; // neighbors differ

/** The series of an answer. */
export function seriesOf(answer: SeriesAnswer, metrics: MetricsQuery, run: Run): SeriesData {
  if (metrics.compares) return comparisonOf(answer);
  const step = secondsOf(run.to - run.from) * 1000;
  const all = answer.series.map((s) => new Map(s.samples?.map((p) => [Number(p.timestampMs), p.value ?? 0])));
  const ends = [...new Set(all.flatMap((samples) => [...samples.keys()]))].sort((a, b) => a - b);
  const times: number[] = [];
  for (let at = ends[0]; at <= ends.at(-1)!; at += step) times.push(at - step);
  const list = answer.series.map((s, i): Series => {
    const numbers = [...all[i].values()];
    const sum = numbers.reduce((a, b) => a + b, 0);
    const values = times.map((at) => all[i].get(at + step) ?? null);
    const examples = (s.exemplars ?? []).map(exampleOf);
    // The examples of a calculation have the numbers before it.
    if (metrics.calculates) for (const e of examples) e.value = values[times.findLastIndex((at) => at < e.at)] ?? NaN;
    return {
      name: nameOf(s.labels, metrics), title: titleOf(s.labels), values, color: '', examples,
      figures: [numbers.at(-1) ?? NaN, Math.min(...numbers), Math.max(...numbers), metrics.adds ? sum : sum / numbers.length],
    };
  });
  const services = answer.series.every((s) => s.labels.length === 1 && canonical(s.labels[0].key) === 'service');
  sortByLast(list).forEach((s, i) => { s.color = services ? serviceColor(s.name) : `var(--svc-${((i * stride) % colors) + 1})`; });
  const format = formatOf(metrics);
  return { times, end: ends.at(-1) ?? 0, list, columns: [t('Last value'), t('Minimum'), t('Maximum'), metrics.adds ? t('Sum') : t('Mean')].map((label) => ({ label, format })) };
}

/** The values of attributes that `compare()` counts in the selection and in the other spans, as shares of those with the attribute. */
function comparisonOf({ series }: SeriesAnswer): SeriesData {
  const totals = new Map<string, number>();
  const rows = new Map<string, number[]>();
  for (const { labels: [meta, value], value: n = 0 } of series) {
    const side = textOf(meta);
    if (side.endsWith('_total')) totals.set(side + value.key, n);
    else rows.set(titleOf([value]), rows.get(titleOf([value])) ?? [0, 0]);
  }
  for (const { labels: [meta, value], value: n = 0 } of series) {
    const side = textOf(meta);
    const row = rows.get(titleOf([value]));
    if (row && !side.endsWith('_total')) row[side === 'selection' ? 0 : 1] = n / (totals.get(`${side}_total${value.key}`) || Infinity);
  }
  const list = [...rows].map(([title, [selected, others]]): Series => ({ name: title, title, values: [], color: '', examples: [], figures: [selected, others, selected - others] }));
  return { times: [], end: 0, list: sortByLast(list), columns: [{ label: t('Selection'), format: percent }, { label: t('Others'), format: percent }, { label: t('Difference'), format: signed }] };
}

function signed(x: number): string {
  return (x > 0 ? '+' : x < 0 ? '−' : '') + percent(Math.abs(x));
}

function sortByLast(list: Series[]): Series[] {
  return list.sort((a, b) => b.figures.at(-1)! - a.figures.at(-1)!);
}

function exampleOf(e: { labels: Label[]; timestampMs: string; value?: number }): Example {
  return { trace: e.labels.filter((l) => l.key === 'trace:id').map(textOf).join('').padStart(32, '0'), at: Number(e.timestampMs), value: e.value ?? 0 };
}

function textOf({ value }: Label): string {
  return String(Object.values(value)[0] ?? '');
}

function titleOf(labels: Label[]): string {
  return labels.map((l) => `${l.key} = ${textOf(l)}`).join(', ');
}

/** Values of the labels; of quantiles `p90`, and of buckets their bounds. */
function nameOf(labels: Label[], { ofDurations }: MetricsQuery): string {
  return labels.map((l) => {
    const text = textOf(l);
    if (l.key === 'p') return 'p' + number(Number(text) * 100);
    if (l.key === '__bucket') return '≤ ' + (ofDurations ? duration(Number(text) * 1e9) : number(Number(text)));
    return text || '""';
  }).join(', ');
}

/** How numbers of a metrics query are written. */
function formatOf({ inSeconds }: MetricsQuery): (n: number) => string {
  return inSeconds ? (n) => duration(n * 1e9) : number;
}
