import { useMemo } from 'preact/hooks';
import type { Heatmap } from '../../api/types';
import { Badge, classes } from '../../shell/controls';
import { ColumnEdge, columnHead, columnKeys, columnWidths } from '../../shell/columns';
import { cutsOf } from '../../shell/cut';
import { count, duration, millis, percent, shortID, zoneName } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { Name } from '../../shell/name';
import { zone } from '../../shell/preferences';
import { ServiceMark } from '../../shell/service-mark';
import { AnswerState, Empty, Messages, Partial } from '../../shell/states';
import { t } from '../../shell/text';
import { hasDates, Time } from '../../shell/time';
import { link } from '../../shell/url';
import { useRequest } from '../../shell/use-request';
import { markedSearch } from './links';
import type { Run } from './run';
import { useRows } from './use-rows';
import table from './trace-table.module.css';
import css from './span-table.module.css';

const examples = 200;

const columns = columnWidths('spans');

interface Example {
  trace: string;
  span: string;
  start: string;
  duration: number;
  service: string;
  name: string;
  error: boolean;
  /** What failed, or "". */
  errorType: string;
}

/** Examples of the matching spans, newest first. */
export default function SpanTable({ run }: { run: Run }) {
  const answer = useRequest<Heatmap>('heatmap', { q: run.q, start: run.start, end: run.end, of: 'spans', columns: 2, exemplars: examples, errorTypes: 1 }, { maxAge: 300_000 });
  const { data } = answer;
  const list = useMemo(() => (data ? examplesOf(data) : []), [data]);
  const state = <AnswerState what={t('Spans')} answer={answer} class={css.notice} rows={8} height="var(--row-h-table)" />;
  if (!data) return state;
  if (list.length === 0) return <div class={css.notice}><Empty title={t('No span matches in this time range.')} /></div>;
  const all = list.length >= data.estimatedSpans;
  const shown = { list: count(list.length), n: count(data.estimatedSpans) };
  return (
    <>
      <div class={css.notice}>
        {!all && <Partial>{data.share < 1 ? t('{list} examples of about {n} matching spans, from a sample of {share}. Filter to see others.', { ...shown, share: percent(data.share) }) : t('{list} examples of {n} matching spans. Filter to see others.', shown)}</Partial>}
        <Messages messages={answer.messages} />
      </div>
      {state}
      <Rows list={list} run={run} />
    </>
  );
}

function Rows({ list, run }: { list: Example[]; run: Run }) {
  const href = (e: Example): string => link({ page: 'trace', id: e.trace }, { span: e.span, search: markedSearch(run.q) });
  const rows = useRows(list.length, (i) => href(list[i]));
  const cuts = useMemo(() => cutsOf(list.map((e) => e.name)), [list]);
  const max = Math.max(...list.map((e) => e.duration), 1);
  return (
    <table class={classes(table.table, css.table)} role="grid" aria-label={t('Spans')} aria-rowcount={list.length + 1}>
      <thead role="rowgroup">
        <tr role="row" onKeyDown={columnKeys(columns)}>
          <th scope="col" role="columnheader" class={classes(table.start, hasDates(run.from) && table.dated)} {...columnHead(columns, 'start')}>{t('Start ({zone})', { zone: zoneName(zone.value, run.to) })}<ColumnEdge columns={columns} /></th>
          <th scope="col" role="columnheader" class={css.service} {...columnHead(columns, 'service')}>{t('Service')}<ColumnEdge columns={columns} /></th>
          <th scope="col" role="columnheader" class={css.name} {...columnHead(columns, 'name')}>{t('Operation')}<ColumnEdge columns={columns} /></th>
          <th scope="col" role="columnheader" class={table.duration} {...columnHead(columns, 'duration')}>{t('Duration')}<ColumnEdge columns={columns} /></th>
          <th scope="col" role="columnheader" class={table.id}>{t('Trace ID')}</th>
        </tr>
      </thead>
      <tbody role="rowgroup" {...rows.body}>
        {list.map((e, i) => (
          <tr key={e.trace + e.span} role="row" aria-rowindex={i + 2} {...rows.row(i)}>
            <td role="gridcell" class={table.start}><Time at={e.start} /></td>
            <td role="gridcell" class={css.service}><ServiceMark name={e.service} /></td>
            <td role="gridcell" class={css.name}>
              <span class={table.rootCell}><a class={table.link} href={href(e)} tabIndex={-1} title={e.name}><Name text={e.name || t('(no name)')} cut={cuts.get(e.name)} title="" /></a>{e.error && <Badge kind="error" title={e.errorType}><Mark kind="error" size={11} label={e.errorType && t('error')} /><span class={css.errorType}>{e.errorType || t('error')}</span></Badge>}</span>
            </td>
            <td role="gridcell" class={table.duration}>
              <span class={table.bar}><span class={table.value}>{duration(e.duration)}</span><span class={table.track} aria-hidden="true"><i class={classes(e.error && table.failed)} style={{ width: `${Math.max(2, (e.duration / max) * 100)}%` }} /></span></span>
            </td>
            <td role="gridcell" class={table.id} title={e.trace}>{shortID(e.trace)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function examplesOf(data: Heatmap): Example[] {
  const e = data.exemplars;
  const list = e.traceID.map((trace, i): Example => ({ trace, span: e.spanID[i], start: e.start[i], duration: e.duration[i], service: e.service[i], name: e.name[i], error: e.error[i], errorType: e.errorType?.[i] ?? '' }));
  return list.sort((a, b) => millis(b.start) - millis(a.start));
}
