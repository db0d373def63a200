import { useRef } from 'preact/hooks';
import type { Change, Services } from '../../api/types';
import { maxOf } from '../../charts/scale';
import { MiniBars, Sparkline } from '../../charts/sparkline';
import { Badge, classes } from '../../shell/controls';
import { slowNow } from '../../shell/clock';
import { age, millis, none, percentile, rate, share } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { useRovingRows } from '../../shell/roving';
import { ServiceMark } from '../../shell/service-mark';
import { t, Text } from '../../shell/text';
import { link } from '../../shell/url';
import { slower, spansOf } from '../service/queries';
import { errorShares, figuresText, rates, type ServiceHealth } from './health';
import { factor } from './sentence';
import css from './service-table.module.css';

const notable = 1.5;
const errorScale = 0.1; // share of errors that fills a mini chart, unless there are more

/** All services with rate, errors and durations. Names link to the page of the service, numbers to Explore. */
export function ServiceTable({ services, data, changes, order }: { services: ServiceHealth[]; data: Services; changes: Change[]; order: string }) {
  const body = useRef<HTMLTableSectionElement>(null);
  useRovingRows(body);
  const scale = Math.max(errorScale, maxOf(services.map((s) => errorShares(s.series))));
  return (
    <table class={css.table} role="grid" aria-label={t('Services')}>
      <thead>
        <tr>
          <th scope="col" class={css.sorted} aria-sort="other"><Text of="Service{order}" order={<span class={css.wide}>{t(', {order} first; {range}', { order, range: figuresText({ since: null }, data) })}</span>} /></th>
          <th scope="col" class={classes(css.number, css.wide)}>{t('Requests/s')}</th>
          <th scope="col" class={classes(css.spark, css.wide)}><span class="visually-hidden">{t('Requests over time')}</span></th>
          <th scope="col" class={css.number}>{t('Errors')}</th>
          <th scope="col" class={css.bars}><span class="visually-hidden">{t('Errors over time')}</span></th>
          <th scope="col" class={classes(css.number, css.wide)}>p50</th>
          <th scope="col" class={css.number}>p95</th>
          <th scope="col" class={classes(css.factor, css.wide)}><span class="visually-hidden">{t('p95 compared with usual')}</span></th>
          <th scope="col" class={classes(css.spark, css.wide)}><span class="visually-hidden">{t('p95 over time')}</span></th>
          <th scope="col" class={classes(css.number, css.wide)}>p99</th>
        </tr>
      </thead>
      <tbody ref={body}>
        {services.map((s) => <Row key={s.name} s={s} data={data} scale={scale} version={changes.find((c) => c.kind === 'version' && c.service === s.name)} />)}
      </tbody>
    </table>
  );
}

/** ", 36 min", or nothing for changes older than a day. */
function ageOf(at: string): string {
  const text = age(millis(at), Math.max(slowNow.value, millis(at)));
  return text && `, ${text.replace(/ ago$/, '')}`;
}

const marks = { failing: 'error', silent: 'warn', slow: 'warn', ended: 'partial' } as const;
const labels = { failing: t('failing'), silent: t('silent'), slow: t('slow'), ended: t('recovered') };

function Row({ s, data, scale, version }: { s: ServiceHealth; data: Services; scale: number; version?: Change }) {
  const { figures: summary, series: { since } } = s;
  const explore = (more: string): string => link({ page: 'explore' }, { q: spansOf(s.name, more) });
  const perSecond = rates(s.series.calls, data);
  const slow = s.slowdown !== null && s.slowdown >= notable;
  const p95 = summary.p95 === null ? none : percentile(summary.p95);
  return (
    <tr data-row class={css.row}>
      <th scope="row">
        <span class={css.service}>
          <span class={css.mark}>{s.state !== 'normal' && <Mark kind={marks[s.state]} label={labels[s.state]} />}</span>
          <a class={css.link} href={link({ page: 'service', name: s.name })}><ServiceMark name={s.name} inferred={s.inferred} strong /></a>
          {version && <span class={classes(css.wide, css.version)}><Badge title={t('version {from} → {to}', { from: version.from || '?', to: version.to })}><span>{version.to}<span class={css.age}>{ageOf(version.at)}</span></span></Badge></span>}
          {s.inferred && <span class={classes(css.inferred, css.wide)}>{t('inferred')}</span>}
          {since && <span class={classes(css.inferred, css.since)}>{figuresText(s.series, data)}</span>}
          {s.state === 'silent' && <span class={classes(css.inferred, css.wide)}>{t('requests stopped')}</span>}
        </span>
      </th>
      <td class={classes(css.number, css.wide)}>{rate(s.rate)}</td>
      <td class={classes(css.spark, css.wide)}><Sparkline values={perSecond} color="var(--series-rate)" max={maxOf([perSecond]) * 1.6 || 1} /></td>
      <td class={classes(css.number, s.state === 'failing' ? css.failing : summary.errors === 0 && css.zero)}>
        {summary.errors > 0 ? <a class={css.cellLink} href={explore('error')} title={t('Failed requests')}>{share(s.errorShare)}</a> : '0'}
      </td>
      <td class={css.bars}><MiniBars values={errorShares(s.series)} max={scale} color={s.state === 'failing' ? 'var(--error-solid)' : 'var(--series-p50)'} /></td>
      <td class={classes(css.number, css.wide, css.second)}>{summary.p50 === null ? none : percentile(summary.p50)}</td>
      <td class={classes(css.number, slow && css.strong)}>
        {summary.p95 === null ? p95 : <a class={css.cellLink} href={explore(slower(summary.p95))} title={t('The slowest requests')}>{p95}</a>}
        {slow && <span class={css.below}>▲ {factor(s.slowdown!)}</span>}
      </td>
      <td class={classes(css.factor, css.wide)}>{slow && <span title={t('compared with the usual p95')}>▲ {factor(s.slowdown!)}</span>}</td>
      <td class={classes(css.spark, css.wide)}><Sparkline values={s.series.p95} color={slow ? 'var(--warn-solid)' : 'var(--series-p95)'} dot /></td>
      <td class={classes(css.number, css.wide, css.second)}>{summary.p99 === null ? none : percentile(summary.p99)}</td>
    </tr>
  );
}
