import { useMemo } from 'preact/hooks';
import type { Heatmap } from '../api/types';
import { count, duration, none } from '../shell/format';
import { t } from '../shell/text';
import { Time } from '../shell/time';
import { durationAt, gridOf, marginal, quantileRow, type HeatGrid } from './heatmap-model';
import css from './heatmap-table.module.css';

const maxRows = 20;

/** The numbers of a heatmap: counts, errors and quantiles of durations for each part of the time range. */
export default function HeatmapTable({ data }: { data: Heatmap }) {
  const g = useMemo(() => gridOf(data), [data]);
  const parts = useMemo(() => partsOf(g), [g]);
  return (
    <div class={css.scroll} tabIndex={0} role="region" aria-label={t('Durations over time, as a table')}>
      <table class={css.table}>
        <thead>
          <tr><th scope="col">{t('From')}</th><th scope="col">{g.of === 'traces' ? t('Traces') : t('Spans')}</th><th scope="col">{t('With errors')}</th><th scope="col">p50</th><th scope="col">p95</th><th scope="col">p99</th><th scope="col">{t('Longest')}</th></tr>
        </thead>
        <tbody>
          {parts.map((p) => (
            <tr key={p.from}>
              <th scope="row"><Time at={p.from} precision={1} /></th>
              <td>{count(p.count)}</td>
              <td>{count(p.errors)}</td>
              {[0.5, 0.95, 0.99, 1].map((q) => <td key={q}>{atQuantile(g, p.sums, q)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function atQuantile(g: HeatGrid, sums: number[], q: number): string {
  const row = quantileRow(sums, q);
  return row === null ? none : duration(durationAt(g, row));
}

function partsOf(g: HeatGrid): { from: number; count: number; errors: number; sums: number[] }[] {
  const width = Math.ceil(g.columns / maxRows);
  const parts = [];
  for (let c = 0; c < g.columns; c += width) {
    const last = Math.min(c + width, g.columns) - 1;
    const sums = marginal(g, c, last);
    let errors = 0;
    for (let at = c * g.rows; at < (last + 1) * g.rows; at++) errors += g.errors[at];
    parts.push({ from: g.start + c * g.step, count: sums.reduce((a, b) => a + b, 0), errors, sums });
  }
  return parts;
}
