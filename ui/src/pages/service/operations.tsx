import { useRef } from 'preact/hooks';
import type { OneService, OperationSeries, RoleName, ServiceRole } from '../../api/service';
import type { Red } from '../../api/types';
import { errorShare } from '../../incidents/words';
import { maxOf } from '../../charts/scale';
import { MiniBars, Sparkline } from '../../charts/sparkline';
import { capable } from '../../shell/config';
import { classes } from '../../shell/controls';
import { cutsOf } from '../../shell/cut';
import { count, none, percentile, rate, share } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { Name } from '../../shell/name';
import { useRovingRows } from '../../shell/roving';
import { Partial } from '../../shell/states';
import { t, tn } from '../../shell/text';
import { link, navigate } from '../../shell/url';
import { errorShares, figuresOf, figuresSeconds, figuresText, isFailing, slowdown } from '../overview/health';
import { factor } from '../overview/sentence';
import { useCallees, type Callee } from './callees';
import { operationQuery, slower, spansOf } from './queries';
import { mainRole, roleOf, timeShare, used } from './roles';
import css from './service.module.css';

const slowFrom = 1.5;
const errorScale = 0.1; // share of errors that fills a mini chart, unless there are more

/** Operations of a service, those that take most time first, then its calls of others. A row marks its operation for the heatmap below. */
export function Operations({ data, service, marked }: { data: OneService; service: string; marked: OperationSeries | undefined }) {
  const body = useRef<HTMLTableElement>(null);
  useRovingRows(body);
  const since = mainRole(data)!.total.since?.start ?? data.start;
  const callees = useCallees(service, used(roleOf(data, 'calls').total) && capable('aggregates'), since, data.end);
  const shown = data.roles.filter((r) => r.operations.some(used) && (r.role !== 'internal' || !used(data.roles[0].total)));
  const scale = Math.max(errorScale, maxOf(shown.flatMap((r) => r.operations.map((o) => errorShares(o)))));
  return (
    <>
      <table ref={body} class={css.table} role="grid" aria-label={t('Operations')}>
        <thead>
          <tr>
            <th scope="col">{t('Operation, {range}', { range: figuresText(mainRole(data)!.total, data) })}</th>
            <th scope="col" class={classes(css.number, css.wide)}>{t('Per second')}</th>
            <th scope="col" class={css.number}>{t('Errors')}</th>
            <th scope="col" class={classes(css.bars, css.wide)}><span class="visually-hidden">{t('Errors over time')}</span></th>
            <th scope="col" class={classes(css.number, css.wide)}>p50</th>
            <th scope="col" class={classes(css.number, css.p95)}>p95</th>
            <th scope="col" class={classes(css.spark, css.wide)}><span class="visually-hidden">{t('p95 over time')}</span></th>
            <th scope="col" class={classes(css.number, css.wide)}>p99</th>
            <th scope="col" class={classes(css.time, css.wide)} aria-sort="descending">{t('Share of time')}</th>
          </tr>
        </thead>
        {shown.map((r) => <Role key={r.role} role={r} data={data} service={service} marked={marked} scale={scale} callees={r.role === 'calls' ? callees : null} />)}
      </table>
      {shown.filter((r) => r.omitted > 0).map((r) => <div key={r.role} class={css.notice}><Partial>{tn(r.omitted, '{n} operation that takes less time is not listed.', '{n} operations that take less time are not listed.', { n: count(r.omitted) })}</Partial></div>)}
    </>
  );
}

const roleNames: Record<RoleName, () => string> = { requests: () => t('Requests'), calls: () => t('Outgoing calls'), internal: () => t('Internal spans') };

interface RoleProps {
  role: ServiceRole;
  data: OneService;
  service: string;
  marked: OperationSeries | undefined;
  scale: number;
  /** Callees of calls with one name. */
  callees: Map<string, Callee[]> | null;
}

function Role({ role, data, service, marked, scale, callees }: RoleProps) {
  const cuts = cutsOf(role.operations.map((o) => o.name));
  return (
    <tbody>
      {role.role !== 'requests' && <tr class={css.group}><th scope="rowgroup" colSpan={3}>{roleNames[role.role]()}</th><td colSpan={6} class={css.wide} /></tr>}
      {role.operations.filter(used).map((o) => {
        const list = callees?.get(o.name) ?? [];
        return [
          <Row key={o.name} o={o} cut={cuts.get(o.name)} role={role} data={data} service={service} marked={o === marked} scale={scale} callees={list.length} />,
          ...list.map((c) => <CalleeRow key={`${o.name}\n${c.callee}`} c={c} seconds={figuresSeconds(o, data)} time={role.total.time} service={service} />),
        ];
      })}
    </tbody>
  );
}

function Row({ o, cut, role, data, service, marked, scale, callees }: Omit<RoleProps, 'marked' | 'callees'> & { o: OperationSeries; cut?: number; marked: boolean; callees: number }) {
  const failing = isFailing(o);
  const figures = figuresOf(o);
  const slow = slowdown(figures, o.usual);
  const isSlow = slow !== null && slow >= slowFrom;
  const explore = (...more: string[]): string => link({ page: 'explore' }, { q: operationQuery(service, o.name, ...more), of: 'spans' });
  const part = timeShare(o, role);
  return (
    <tr data-row class={classes(css.row, marked && css.marked)} aria-selected={marked}>
      <th scope="row">
        <span class={css.operation}>
          <span class={css.sign}>{(failing || isSlow) && <Mark kind={failing ? 'error' : 'warn'} size={13} label={failing ? t('failing') : t('slow')} />}</span>
          <button type="button" class={css.mark} onClick={() => navigate({ operation: o.name }, { replace: true })} title={o.name}><Name text={o.name || t('(no name)')} cut={cut} title="" /></button>
          {callees > 0 && <span class={css.second}>{t('{n} callees', { n: count(callees) })}</span>}
          <a class={css.traces} href={explore()} aria-label={t('Traces of {name}', { name: o.name })}>{t('Traces')}</a>
        </span>
      </th>
      <td class={classes(css.number, css.wide)}>{rate(figures.calls / figuresSeconds(o, data))}</td>
      <td class={classes(css.number, failing ? css.failing : figures.errors === 0 && css.zero)}>{figures.errors > 0 ? <a class={css.cellLink} href={explore('error')} title={t('Failed spans')}>{share(errorShare(figures))}</a> : '0'}</td>
      <td class={classes(css.bars, css.wide)}><MiniBars values={errorShares(o)} max={scale} color={failing ? 'var(--error-solid)' : 'var(--series-p50)'} width={76} /></td>
      <td class={classes(css.number, css.wide, css.second)}>{quantile(figures, 'p50')}</td>
      <td class={classes(css.number, css.p95, isSlow && css.strong)} title={isSlow ? t('{factor} the usual p95', { factor: factor(slow) }) : undefined}>
        {figures.p95 === null ? none : <a class={css.cellLink} href={explore(slower(figures.p95))} title={t('The slowest spans')}>{isSlow && '▲ '}{percentile(figures.p95)}</a>}
      </td>
      <td class={classes(css.spark, css.wide)}><Sparkline values={o.p95} color={isSlow ? 'var(--warn-solid)' : 'var(--series-p95)'} width={84} dot /></td>
      <td class={classes(css.number, css.wide, css.second)}>{quantile(figures, 'p99')}</td>
      <td class={classes(css.time, css.wide)} title={role.role === 'internal' ? t('Internal spans lie within other spans of the service') : undefined}>{role.role === 'internal' ? none : <span class={css.timeCell}><span class={css.track}><i style={{ width: `${(part * 100).toFixed(1)}%` }} /></span><span>{share(part)}</span></span>}</td>
    </tr>
  );
}

/** The calls of one name to one of its callees. */
function CalleeRow({ c, seconds, time, service }: { c: Callee; seconds: number; time: number; service: string }) {
  const explore = (...more: string[]): string => link({ page: 'explore' }, { q: spansOf(service, c.where, ...more), of: 'spans' });
  const part = time > 0 ? Math.min(1, c.time / time) : 0;
  return (
    <tr data-row class={css.row}>
      <th scope="row"><span class={classes(css.operation, css.callee)}><span class={css.second} aria-hidden="true">→</span><a href={explore()} title={c.where}>{c.callee || t('(empty)')}</a></span></th>
      <td class={classes(css.number, css.wide)}>{rate(c.count / seconds)}</td>
      <td class={classes(css.number, c.errors === 0 && css.zero)}>{c.errors > 0 ? <a class={css.cellLink} href={explore('error')} title={t('Failed spans')}>{share(c.errors / c.count)}</a> : '0'}</td>
      <td class={classes(css.bars, css.wide)} />
      <td class={classes(css.number, css.wide, css.second)}>{percentile(c.p50)}</td>
      <td class={classes(css.number, css.p95)}>{percentile(c.p95)}</td>
      <td class={classes(css.spark, css.wide)} />
      <td class={classes(css.number, css.wide, css.second)}>{percentile(c.p99)}</td>
      <td class={classes(css.time, css.wide)}><span class={css.timeCell}><span class={css.track}><i style={{ width: `${(part * 100).toFixed(1)}%` }} /></span><span>{share(part)}</span></span></td>
    </tr>
  );
}

function quantile(r: Red, q: 'p50' | 'p99'): string {
  const value = r[q];
  return value === null ? none : percentile(value);
}
