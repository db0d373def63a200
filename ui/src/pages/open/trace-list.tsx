import { useState } from 'preact/hooks';
import { CompareLink, Pick, useChecks } from '../../compare/pick';
import { classes, Input } from '../../shell/controls';
import { count, duration, shortID, zoneName } from '../../shell/format';
import { slowNow } from '../../shell/clock';
import { Name } from '../../shell/name';
import { zone } from '../../shell/preferences';
import { t } from '../../shell/text';
import { Time } from '../../shell/time';
import { link } from '../../shell/url';
import type { FileTrace } from '../../trace/model/types';
import { RootCell } from '../explore/root-cell';
import { useRows } from '../explore/use-rows';
import table from '../explore/trace-table.module.css';
import css from './open.module.css';

/** Maximum number of listed traces, and the number from which they can be filtered. */
const maxListed = 500;
const filtered = 20;

/** The traces of the open files, newest first. One tab stop: arrow keys move, Enter opens. */
export function TraceList({ traces }: { traces: FileTrace[] }) {
  const [filter, setFilter] = useState('');
  const words = filter.toLowerCase().split(/\s+/);
  const matching = traces.filter((trace) => words.every((w) => `${trace.rootService} ${trace.rootName} ${trace.traceID} ${trace.file}`.toLowerCase().includes(w)));
  const listed = matching.slice(0, maxListed);
  return (
    <section aria-label={t('Traces')}>
      {traces.length >= filtered && (
        <div class={css.tools}>
          <Input type="search" icon="search" class={css.filter} aria-label={t('Filter traces')} placeholder={t('Service, operation, trace ID or file')} value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
          <span class={css.shown} role="status">{t('{listed}, newest first', { listed: matching.length > listed.length ? t('{listed} of {matching}', { listed: count(listed.length), matching: count(matching.length) }) : count(matching.length) })}</span>
        </div>
      )}
      {listed.length > 0 ? <Table traces={listed} /> : <p class={css.none}>{t('No trace contains these words.')}</p>}
    </section>
  );
}

function Table({ traces }: { traces: FileTrace[] }) {
  const href = (trace: FileTrace): string => link({ page: 'open', id: trace.traceID });
  const { checked, check } = useChecks(traces);
  const rows = useRows(traces.length, (i) => href(traces[i]), (i) => check(traces[i].traceID));
  const head = t('Start ({zone})', { zone: zoneName(zone.value, slowNow.value) });
  return (
    <>
      <div class={css.compare}><CompareLink checked={checked} pair={(a, b) => ({ page: 'open', id: `${a}...${b}` })} /></div>
      <table class={classes(table.table, css.table)} role="grid" aria-label={t('Traces')} aria-rowcount={traces.length + 1}>
        <thead role="rowgroup">
          <tr role="row">
            <th scope="col" role="columnheader" class={table.pick}><span class="visually-hidden">{t('Compare')}</span></th>
            <th scope="col" role="columnheader" class={classes(table.start, css.start)}>{head}</th>
            <th scope="col" role="columnheader" class={table.root}>{t('Root')}</th>
            <th scope="col" role="columnheader" class={classes(table.duration, css.number)}>{t('Duration')}</th>
            <th scope="col" role="columnheader" class={css.number}>{t('Spans')}</th>
            <th scope="col" role="columnheader" class={css.number}>{t('Services')}</th>
            <th scope="col" role="columnheader" class={css.name}>{t('File')}</th>
            <th scope="col" role="columnheader" class={table.id}>{t('Trace ID')}</th>
          </tr>
        </thead>
        <tbody role="rowgroup" {...rows.body}>
          {traces.map((trace, i) => (
            <tr key={trace.traceID} role="row" aria-rowindex={i + 2} {...rows.row(i)}>
              <td role="gridcell" class={table.pick}><Pick name={`${trace.rootName} ${shortID(trace.traceID)}`} checked={checked.includes(trace.traceID)} onCheck={() => check(trace.traceID)} /></td>
              <td role="gridcell" class={classes(table.start, css.start)}><Start trace={trace} /></td>
              <td role="gridcell" class={table.root}><Root trace={trace} href={href(trace)} /></td>
              <td role="gridcell" class={classes(table.duration, css.number)}>{duration(trace.duration)}</td>
              <td role="gridcell" class={css.number}>{count(trace.spans)}</td>
              <td role="gridcell" class={css.number}>{count(trace.services)}</td>
              <td role="gridcell" class={css.name} title={trace.file}>{trace.file}</td>
              <td role="gridcell" class={table.id} title={trace.traceID}>{shortID(trace.traceID.replace(/^0{16}/, ''))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function Start({ trace }: { trace: FileTrace }) {
  if (trace.start === '0') return <>{t('no time')}</>;
  return <Time at={trace.start} precision={1} />;
}

function Root({ trace, href }: { trace: FileTrace; href: string }) {
  return (
    <RootCell
      service={trace.rootService} href={href} title={`${trace.rootService}: ${trace.rootName}`} errors={trace.errors} orphans={trace.orphans}
      incomplete={t('Incomplete: the parents of {orphans} spans are not in the files', { orphans: count(trace.orphans) })}
    >
      <Name text={trace.rootName} title="" /> <span class={table.service}>{trace.rootService}</span>
    </RootCell>
  );
}
