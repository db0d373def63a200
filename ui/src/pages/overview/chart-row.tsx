import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Change, Services } from '../../api/types';
import { TimeChart, type TimeChartProps } from '../../charts/time-chart';
import { maxOf } from '../../charts/scale';
import { Button, classes } from '../../shell/controls';
import { errorShare } from '../../incidents/words';
import { axisDuration, count, millis, percentile, rate, share, trimmed } from '../../shell/format';
import { zone } from '../../shell/preferences';
import { t } from '../../shell/text';
import { navigate } from '../../shell/url';
import { errorShares, figuresOf, figuresSeconds, figuresText, rates, usualRate, type ServiceHealth } from './health';
import { factor } from './sentence';
import css from './overview.module.css';

const maxMarks = 3;
const notable = 1.5;
const minRate = 0.05;

/** Errors, requests and durations of a service, or of `all` services together. */
export function ChartRow({ data, changes, judged, all = false }: { data: Services; changes: Change[]; judged: ServiceHealth[]; all?: boolean }) {
  const { total } = data;
  const { usual } = total;
  const figures = figuresOf(total);
  const seconds = figuresSeconds(total, data);
  const of = figuresText(total, data);
  const caption = all ? t('All services together, {of}', { of }) : t('Numbers: {of}', { of });
  const perSecond = rates(total.calls, data);
  // A step that has just begun has few requests: its share and quantiles would jump.
  const settled = <T,>(list: T[]): (T | null)[] => list.map((v, i) => (perSecond[i] === null ? null : v));
  const common = {
    times: total.calls.map((_, i) => millis(data.start) + (i * data.step) / 1e6), end: millis(data.start) + (data.points * data.step) / 1e6,
    zone: zone.value, marks: marksOf(changes, judged), onSelect: (from: number, to: number) => navigate({ range: { from: new Date(from).toISOString(), to: new Date(to).toISOString() } }),
  };
  const requestsUsual = usualRate(total);
  const shares = settled(errorShares(total)).map((x) => x ?? null);
  const errorsNow = errorShare(figures);
  const errorsUsual = usual && errorShare(usual);
  return (
    <>
      <p class={css.caption} title={all ? t('A request counts once for each service that handles it') : undefined}>{caption}</p>
      <div class={css.charts} data-chart>
        <Chart
          title={t('Errors')} value={share(errorsNow)} note={<Note now={errorsNow} usual={errorsUsual} most={maxOf([shares])} format={share} worse="error" />}
          chart={{ ...common, markLabels: true, label: t('Share of failed requests'), lines: [{ name: t('errors'), values: shares, ...errorColors(errorsNow, errorsUsual) }], usual: errorsUsual, floor: 0.01, format: share, axis: (v) => axisShare(v, maxOf([shares])) }}
        />
        <Chart
          title={t('Requests')} value={requestsText(figures.calls, seconds)} class={css.second} note={<Note now={figures.calls / seconds} usual={requestsUsual} format={(x) => `${rate(x)}/s`} />}
          chart={{ ...common, label: t('Requests per second'), lines: [{ name: t('requests'), values: perSecond, color: 'var(--series-rate)' }], usual: requestsUsual, format: (v) => `${rate(v)}/s`, axis: (v) => rate(v).replace(/[.,]0+(?=\D|$)/, '') }}
        />
        <Chart
          title={t('Duration')} value={figures.p95 === null ? '–' : `p95 ${percentile(figures.p95)}`} note={<Note now={figures.p95} usual={usual?.p95 ?? null} most={maxOf([settled(total.p95)])} format={percentile} worse="warn" />}
          chart={{
            ...common, label: t('Duration of requests'), usual: usual?.p95 ?? null, format: percentile, axis: axisDuration,
            lines: [{ name: 'p99', values: settled(total.p99), color: 'var(--series-p99)' }, { name: 'p95', values: settled(total.p95), color: 'var(--series-p95)' }, { name: 'p50', values: settled(total.p50), color: 'var(--series-p50)' }],
          }}
        />
      </div>
    </>
  );
}

/** A rate, or a count where the rate says nothing. */
function requestsText(calls: number, seconds: number): string {
  return calls / seconds < minRate ? t('{calls} in total', { calls: count(calls) }) : `${rate(calls / seconds)}/s`;
}

/** Red marks the exception: usual errors are gray-blue. Without anything to compare with, they may be one. */
function errorColors(now: number, usual: number | null): { color: string; fill: string } {
  const exception = now > 0 && (usual === null || now >= usual * notable);
  return exception ? { color: 'var(--error-solid)', fill: 'var(--error-soft)' } : { color: 'var(--series-p95)', fill: 'var(--bg-hover)' };
}

/** Axis labels of shares without needless decimals. */
function axisShare(v: number, max: number): string {
  return `${trimmed(v * 100, max < 0.01 ? 2 : 1)}\u202f%`;
}

/** New versions, those of abnormal services first. */
function marksOf(changes: Change[], judged: ServiceHealth[]): TimeChartProps['marks'] {
  const state = new Map(judged.map((s) => [s.name, s.state !== 'normal']));
  return changes
    .filter((c) => c.kind === 'version')
    .sort((a, b) => Number(state.get(b.service) ?? false) - Number(state.get(a.service) ?? false))
    .slice(0, maxMarks)
    .map((c) => ({ at: millis(c.at), label: `${c.service} ${c.to}` }));
}

function Chart({ title, value, note, chart, class: extra }: { title: string; value: string; note: ComponentChildren; chart: TimeChartProps; class?: string }) {
  const [table, setTable] = useState(false);
  return (
    <section class={classes(css.chart, extra)} aria-label={chart.label}>
      <div class={css.chartHead}>
        <h2 class={css.chartTitle}>{title}</h2><b>{value}</b><span class={css.space} />{note}
        <Button kind="quiet" class={css.tableButton} data-unshared aria-pressed={table} onClick={() => setTable(!table)} aria-label={t('{label}: table', { label: chart.label })}>{t('Table')}</Button>
      </div>
      <TimeChart {...chart} table={table} />
    </section>
  );
}

const worst = { error: css.error, warn: css.warn };

/** The comparison with the usual: color only if it is notable and a change for the worse. `most` is the highest point of the line. */
function Note({ now, usual, most = 0, format, worse }: { now: number | null; usual: number | null; most?: number; format: (x: number) => string; worse?: 'error' | 'warn' }) {
  if (now === null || usual === null) return null;
  if (usual === 0) return <span class={classes(css.note, now > 0 && worse && worst[worse])}>{now === 0 ? t('as usual') : t('usually 0')}</span>;
  const ratio = now / usual;
  if (ratio >= notable) return <span class={classes(css.note, worse && worst[worse])}>{t('▲ {ratio}, usually {usual}', { ratio: factor(ratio), usual: format(usual) })}</span>;
  if (ratio <= 1 / notable) return <span class={css.note}>{t('▼ usually {usual}', { usual: format(usual) })}</span>;
  return <span class={css.note}>{most >= usual * notable ? t('up to {most}', { most: format(most) }) : t('as usual')}</span>;
}
