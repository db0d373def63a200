import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ExplainSide } from '../../../api/explain';
import type { TraceTree } from '../../../api/tree';
import { spansOf } from '../../../query/edit';
import { withSet } from '../../../query/sets';
import { Button, classes } from '../../../shell/controls';
import { about, axisDuration, count, duration, fixed, percent, percentile, share } from '../../../shell/format';
import { Icon } from '../../../shell/icons';
import { announce } from '../../../shell/live-region';
import { useRovingRows } from '../../../shell/roving';
import { serviceLabel } from '../../../shell/service';
import { serviceColor } from '../../../shell/service-color';
import { ServiceSwatch } from '../../../shell/service-mark';
import { AnswerState, Messages, Partial, Progress } from '../../../shell/states';
import { t, tn } from '../../../shell/text';
import { link, view } from '../../../shell/url';
import { useRequest } from '../../../shell/use-request';
import { explainParams } from '../explain/selection';
import type { Run } from '../run';
import type { TabProps } from '../tabs';
import { axisOf, foldedAtFirst, rowsOf, shapeOf, type TreeRow } from './model';
import css from './tree.module.css';

const firstRows = 200;

/** The selected traces, or all that match, as one tree: a row for each path of services and operations. */
export default function TreeTab({ run }: TabProps) {
  const params = explainParams(run, { ...view.value, base: '' }) ?? { q: run.q, start: run.start, end: run.end };
  const answer = useRequest<TraceTree>('tree', params, { maxAge: 300_000 });
  const { data, loading } = answer;
  useEffect(() => { if (data && !loading) announce(tn(data.paths.parent.length, '{n} call path', '{n} call paths', { n: count(data.paths.parent.length) })); }, [data, loading]);
  return (
    <div class={css.tab}>
      <Progress active={loading} label={t('Reading traces')} />
      <AnswerState what={t('Tree')} answer={answer} class={css.notice} rows={8} />
      {data && (
        <div class={css.head}>
          <p>{loading ? '\u00a0' : summary(data.set, !!view.value.sel)}</p>
          {data.paths.omitted > 0 && <Partial>{tn(data.paths.omitted, '{n} call path with less time is omitted.', '{n} call paths with less time are omitted.', { n: count(data.paths.omitted) })}</Partial>}
          <Messages messages={answer.messages} />
        </div>
      )}
      {data && data.paths.parent.length > 0 && <Tree key={answer.at} data={data} run={run} />}
    </div>
  );
}

/** How many traces the tree is of. */
function summary({ traces, estimated, exact, share: part }: ExplainSide, selected: boolean): string {
  const n = count(traces);
  if (traces === 0) return selected ? t('No trace is selected in this time range.') : t('No trace matches in this time range.');
  if (part === 1) return selected ? tn(traces, '{n} selected trace', 'All {n} selected traces', { n }) : tn(traces, '{n} trace', 'All {n} traces', { n });
  const all = about(count(estimated), !exact);
  return selected ? t('{n} of {all} selected traces, spread over the time range', { n, all }) : t('{n} of {all} traces, spread over the time range', { n, all });
}

function Tree({ data, run }: { data: TraceTree; run: Run }) {
  const { paths, set } = data;
  const shape = useMemo(() => shapeOf(paths), [paths]);
  const [folded, setFolded] = useState<ReadonlySet<number>>(() => foldedAtFirst(shape));
  const [limit, setLimit] = useState(firstRows);
  const body = useRef<HTMLTableSectionElement>(null);
  useRovingRows(body);
  const rows = useMemo(() => rowsOf(shape, folded), [shape, folded]);
  const axis = useMemo(() => axisOf(paths, set.traces), [paths, set]);
  const toggle = (path: number): void => {
    const next = new Set(folded);
    if (!next.delete(path)) next.add(path);
    setFolded(next);
  };
  return (
    <>
      <table class={css.table} aria-label={t('Traces as one tree')}>
        <thead>
          <tr>
            <th scope="col" class={css.path}>{t('Call path')}</th>
            <th scope="col" class={css.when}><span class="visually-hidden">{t('Time after the start of the trace')}</span><Scale axis={axis} /></th>
            <th scope="col" class={css.number} title={t('Mean number of calls over all these traces')}>{t('calls/trace')}</th>
            <th scope="col" class={css.number} title={t('Share of the calls that failed')}>{t('Errors')}</th>
            <th scope="col" class={classes(css.number, css.p50)}>p50</th>
            <th scope="col" class={css.number}>p95</th>
            <th scope="col" class={classes(css.number, css.self)} title={t('Self time on the critical path, mean over all these traces')}>{t('Self time')}</th>
          </tr>
        </thead>
        <tbody ref={body}>{rows.slice(0, limit).map((r) => <Row key={r.path} data={data} row={r} axis={axis} run={run} onToggle={toggle} />)}</tbody>
      </table>
      {rows.length > limit && <div class={css.more}><Button onClick={() => setLimit(limit * 5)}>{t('Show more call paths')}</Button><span>{t('{shown} of {all} call paths', { shown: count(limit), all: count(rows.length) })}</span></div>}
      <p class={css.hint}>{t('Bars run from the median start to p50; the line extends to p95. Times are as recorded. Click p95 or an error share to open an example.')}</p>
    </>
  );
}

/** Marks of the time axis at each quarter. */
function Scale({ axis }: { axis: number }) {
  return <span class={css.scale} aria-hidden="true">{[0, 0.25, 0.5, 0.75].map((x) => <i key={x} style={{ left: `${x * 100}%` }}>{axisDuration(axis * x)}</i>)}</span>;
}

function Row({ data, row, axis, run, onToggle }: { data: TraceTree; row: TreeRow; axis: number; run: Run; onToggle: (path: number) => void }) {
  const { paths: p, set } = data;
  const i = row.path;
  const [service, name] = [p.service[i], p.name[i]];
  const other = p.parent[i] < 0 || p.service[p.parent[i]] !== service;
  const what = `${serviceLabel(service)} ${name}`;
  const example = (ref: { trace: string; span: string }): string => link({ page: 'trace', id: ref.trace }, { span: ref.span });
  const failed = p.failed[i];
  const rare = p.traces[i] < set.traces ? t('{what}: in {share} of the traces', { what, share: percent(p.traces[i] / set.traces) }) : what;
  const times = t('starts at {start}, p50 {p50}, p95 {p95}', { start: duration(p.start[i]), p50: percentile(p.p50[i]), p95: percentile(p.p95[i]) });
  return (
    <tr data-row>
      <th scope="row" class={css.path}>
        <span class={css.call} style={{ paddingLeft: `${Math.min(row.depth, 20) * 12}px` }}>
          {row.below > 0
            ? <button type="button" class={css.fold} aria-expanded={row.open} aria-label={row.open ? t('Fold {what}', { what }) : t('Unfold {what}', { what })} onClick={() => onToggle(i)}><Icon name={row.open ? 'chev' : 'right'} size={12} /></button>
            : <span class={css.leaf} />}
          <ServiceSwatch name={service} />
          <a class={css.name} href={link({ page: 'explore' }, { q: withSet(run.q, spansOf({ service, name })) })} title={rare}>
            {other ? <b>{serviceLabel(service)}</b> : <span class="visually-hidden">{serviceLabel(service)}</span>} {name}
          </a>
          {row.below > 0 && !row.open && <span class={css.below}>+{count(row.below)}</span>}
          {p.traces[i] < 0.995 * set.traces && <span class={css.rare}>{percent(p.traces[i] / set.traces)}</span>}
        </span>
      </th>
      <td class={css.when}>
        <span class={css.lane} title={times} style={{ '--c': serviceColor(service) }}>
          <span class="visually-hidden">{times}</span>
          <i class={css.line} style={{ left: `${(p.start[i] / axis) * 100}%`, width: `${(p.p95[i] / axis) * 100}%` }} />
          <i class={css.bar} style={{ left: `${(p.start[i] / axis) * 100}%`, width: `${(p.p50[i] / axis) * 100}%` }} />
        </span>
      </td>
      <td class={css.number}>{callsText(p.calls[i] / set.traces)}<span class={css.label}>{t('calls/trace')}</span></td>
      <td class={classes(css.number, p.errors[i] > 0 ? css.failed : css.zero)}>
        {failed ? <a href={example(failed)} title={t('Slowest failed call')}>{share(p.errors[i] / p.calls[i])}</a> : '0'}<span class={css.label}>{t('errors')}</span>
      </td>
      <td class={classes(css.number, css.p50)}>{percentile(p.p50[i])}</td>
      <td class={css.number}><a href={example(p.slowest[i])} title={t('Slowest call')}>{percentile(p.p95[i])}</a><span class={css.label}>p95</span></td>
      <td class={classes(css.number, css.self)}>{p.self[i] > 0 ? duration(p.self[i]) : <span class={css.zero}>0</span>}</td>
    </tr>
  );
}

/** A mean number of calls: `1`, `2.40`, `<0.01`. */
function callsText(n: number): string {
  return Number.isInteger(n) ? count(n) : n < 0.01 ? '<' + fixed(0.01, 2) : n < 100 ? fixed(n, 2) : count(n);
}
