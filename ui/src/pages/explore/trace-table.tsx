import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import type { CriticalPath, TraceSummary } from '../../api/types';
import { Pick } from '../../compare/pick';
import { canonical, fieldLabel } from '../../query/field';
import { classes } from '../../shell/controls';
import { ColumnEdge, columnHead, columnKeys, columnWidths } from '../../shell/columns';
import { cutsOf } from '../../shell/cut';
import { count, duration, none, percent, shortID, zoneName } from '../../shell/format';
import { Icon } from '../../shell/icons';
import { Name } from '../../shell/name';
import { zone } from '../../shell/preferences';
import { serviceLabel } from '../../shell/service';
import { serviceColor } from '../../shell/service-color';
import { t, t as text, tn } from '../../shell/text';
import { hasDates, Time } from '../../shell/time';
import { navigate, view } from '../../shell/url';
import { selectsAll, traceLink } from './links';
import { RootCell } from './root-cell';
import type { Run } from './run';
import { nextSort, parseSort, type SortKey } from './sort';
import type { Paths } from './use-paths';
import { useRows } from './use-rows';
import css from './trace-table.module.css';

const columns = columnWidths('traces');

interface TraceTableProps {
  traces: TraceSummary[];
  /** Fields shown as columns. */
  fields: string[];
  run: Run;
  /** Checked traces, of which two can be compared. */
  checked?: string[];
  onCheck?: (traceID: string) => void;
  /** The rows are in the order of their arrival, and cannot be sorted. */
  arriving?: boolean;
  /** Critical paths; without them, a bar shows the spans of each service. */
  paths?: Paths;
}

/** Found traces: one tab stop, arrow keys or j and k move, Enter opens. */
export function TraceTable({ traces, fields, run, checked = [], onCheck, arriving, paths }: TraceTableProps) {
  const rows = useRows(traces.length, (i) => traceLink(traces[i], run), onCheck && ((i) => onCheck(traces[i].traceID)));
  const cuts = useMemo(() => cutsOf(traces.map((trace) => trace.rootName)), [traces]);
  const scale = durationScale(traces);
  const matched = !selectsAll(run.q); // otherwise all spans match
  return (
    <table class={css.table} role="grid" aria-label={t('Traces')} aria-rowcount={traces.length + 1}>
      <thead role="rowgroup">
        <tr role="row" onKeyDown={columnKeys(columns)}>
          {onCheck && <th scope="col" role="columnheader" class={css.pick}><span class="visually-hidden">{text('Compare')}</span></th>}
          <SortHead by="start" fixed={arriving} class={classes(css.start, hasDates(run.from) && css.dated)}>{t('Start ({zone})', { zone: zoneName(zone.value, run.to) })}</SortHead>
          <th scope="col" role="columnheader" class={css.root} {...columnHead(columns, 'root')}>{t('Root')}<ColumnEdge columns={columns} /></th>
          <SortHead by="duration" fixed={arriving} class={css.duration}>{t('Duration')}</SortHead>
          <th scope="col" role="columnheader" class={css.mix} {...columnHead(columns, 'mix')}>{paths ? t('Critical path by service') : t('Spans by service')}<ColumnEdge columns={columns} /></th>
          <SortHead by="spans" fixed={arriving} class={css.number}>{t('Spans')}</SortHead>
          {matched && <SortHead by="matched" fixed={arriving} class={css.number} title={t('Spans that match the search')}>{t('Matched')}</SortHead>}
          {fields.map((f) => <th key={f} scope="col" role="columnheader" class={css.field} title={f} {...columnHead(columns, `field:${f}`)}><bdi>{fieldLabel(f)}</bdi><ColumnEdge columns={columns} /></th>)}
          <th scope="col" role="columnheader" class={css.id}>{t('Trace ID')}</th>
        </tr>
      </thead>
      <tbody role="rowgroup" {...rows.body}>
        {traces.map((trace, i) => (
          <tr key={trace.traceID} role="row" aria-rowindex={i + 2} {...rows.row(i)}>
            {onCheck && <td role="gridcell" class={css.pick}><Pick name={`${trace.rootName} ${shortID(trace.traceID)}`} checked={checked.includes(trace.traceID)} onCheck={() => onCheck(trace.traceID)} /></td>}
            <td role="gridcell" class={css.start}><Time at={trace.start} /></td>
            <td role="gridcell" class={css.root}><Root trace={trace} href={traceLink(trace, run)} cut={(name) => cuts.get(name)} /></td>
            <td role="gridcell" class={css.duration}>
              <span class={css.bar}>
                <span class={css.value}>{duration(trace.duration)}</span>
                <span class={css.track} aria-hidden="true"><i class={classes(trace.errors > 0 && css.failed)} style={{ width: `${scale(trace.duration) * 100}%` }} /></span>
              </span>
            </td>
            <td role="gridcell" class={css.mix}>{paths ? <PathMix path={paths.get(trace.traceID)} /> : <Mix trace={trace} />}</td>
            <td role="gridcell" class={css.number}>{count(trace.spans)}</td>
            {matched && <td role="gridcell" class={css.number}>{trace.matched ? count(trace.matched.spans) : none}</td>}
            {fields.map((f) => <FieldCell key={f} values={valuesOf(trace, f)} />)}
            <td role="gridcell" class={css.id} title={trace.traceID}>{shortID(trace.traceID)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The server names fields as in facets. */
function valuesOf(trace: TraceSummary, field: string): string[] {
  return trace.fields?.[canonical(field)] ?? trace.fields?.[field] ?? [];
}

function FieldCell({ values }: { values: string[] }) {
  const text = values.join(', ');
  return <td role="gridcell" class={css.field} title={text}>{text || <span class={css.none}>{none}</span>}</td>;
}

function SortHead({ by, class: extra, title, fixed, children }: { by: SortKey; class: string; title?: string; fixed?: boolean; children: ComponentChildren }) {
  if (fixed) return <th scope="col" role="columnheader" class={extra} title={title} {...columnHead(columns, by)}>{children}<ColumnEdge columns={columns} /></th>;
  const sort = parseSort(view.value.sort);
  // Without a chosen column, the newest match is first.
  const down = sort ? sort.key === by && sort.down : by === 'start';
  const up = sort?.key === by && !sort.down;
  return (
    <th scope="col" role="columnheader" class={classes(extra, (down || up) && css.sorted)} title={title} aria-sort={down ? 'descending' : up ? 'ascending' : undefined} {...columnHead(columns, by)}>
      <button type="button" class={css.sort} onClick={() => navigate({ sort: nextSort(view.value.sort, by) }, { replace: true })}>
        {children}{(down || up) && <Icon name={down ? 'down' : 'up'} size={12} />}
      </button>
      <ColumnEdge columns={columns} />
    </th>
  );
}

function Root({ trace, href, cut }: { trace: TraceSummary; href: string; cut: (name: string) => number | undefined }) {
  const service = trace.rootService;
  return (
    <RootCell
      service={service} href={href} title={service ? `${service}: ${trace.rootName}` : t('The root span was not received')} errors={trace.errors} orphans={trace.orphans}
      incomplete={tn(trace.orphans, 'Incomplete: the parent of {orphans} span was not received', 'Incomplete: the parents of {orphans} spans were not received', { orphans: count(trace.orphans) })}
    >
      {service ? <><Name text={trace.rootName || t('(no name)')} cut={cut(trace.rootName)} title="" /> <span class={css.service}>{serviceLabel(service)}</span></> : <span class={css.service}>{t('root not received')}</span>}
    </RootCell>
  );
}

const maxParts = 8;

/** Spans by service as one bar. The names are in the tooltip. */
function Mix({ trace }: { trace: TraceSummary }) {
  const sorted = [...trace.services].sort((a, b) => b.spans - a.spans);
  const parts = sorted.slice(0, maxParts);
  const rest = sorted.slice(maxParts).reduce((n, s) => n + s.spans, 0);
  const title = sorted.map((s) => `${s.name} ${count(s.spans)}${s.errors ? t(' ({errors} errors)', { errors: count(s.errors) }) : ''}`).join('\n');
  return (
    <span class={css.mixBar} title={title} role="img" aria-label={t('{services} services: {names}', { services: count(trace.services.length), names: parts.slice(0, 3).map((s) => s.name).join(', ') })}>
      {parts.map((s) => <i key={s.name} style={{ flex: s.spans, background: serviceColor(s.name) }} />)}
      {rest > 0 && <i style={{ flex: rest }} />}
    </span>
  );
}

/** The critical path by service as one bar, the longest time first. The times are in the tooltip. */
function PathMix({ path }: { path: CriticalPath | null | undefined }) {
  if (!path) return <span class={css.none}>{path === null && none}</span>;
  const all = path.services.reduce((sum, s) => sum + s.time, path.gap);
  if (all === 0) return <span class={css.none}>{none}</span>;
  const parts = path.services.slice(0, maxParts).filter((s) => s.time > 0.002 * all);
  const rest = all - parts.reduce((sum, s) => sum + s.time, 0);
  const title = [...path.services.map((s) => `${serviceLabel(s.name)} ${duration(s.time)}, ${percent(s.time / all)}`), ...(path.gap ? [t('nothing recorded for {time}', { time: duration(path.gap) })] : [])].join('\n');
  const names = parts.slice(0, 3).map((s) => `${serviceLabel(s.name)} ${percent(s.time / all)}`).join(', ');
  return (
    <span class={css.mixBar} title={title} role="img" aria-label={t('Critical path: {names}', { names })}>
      {parts.map((s) => <i key={s.name} style={{ flex: s.time / all, background: serviceColor(s.name) }} />)}
      {rest > 0 && <i style={{ flex: rest / all }} />}
    </span>
  );
}

/** Length of a duration bar, from 0 to 1: logarithmic, so that short traces stay visible beside long ones. */
function durationScale(traces: TraceSummary[]): (ns: number) => number {
  let [low, high] = [Infinity, 1];
  for (const trace of traces) {
    low = Math.min(low, Math.max(trace.duration, 1));
    high = Math.max(high, trace.duration);
  }
  const from = Math.log(low / 3);
  const span = Math.log(high) - from;
  return (ns) => Math.max(0.02, Math.min(1, (Math.log(Math.max(ns, 1)) - from) / span));
}
