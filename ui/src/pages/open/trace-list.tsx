import { useState } from 'preact/hooks';
import { CompareLink, Pick, useChecks } from '../../compare/pick';
import { Badge, Input } from '../../shell/controls';
import { count, duration, shortID, zoneName } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { slowNow } from '../../shell/clock';
import { zone } from '../../shell/preferences';
import { ServiceSwatch } from '../../shell/service-mark';
import { t } from '../../shell/text';
import { Time } from '../../shell/time';
import { link } from '../../shell/url';
import type { FileTrace } from '../../trace/model/types';
import { useRows } from '../explore/use-rows';
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
  const head = `Start (${zoneName(zone.value, slowNow.value)})`;
  return (
    <>
      <div class={css.compare}><CompareLink checked={checked} pair={(a, b) => ({ page: 'open', id: `${a}...${b}` })} /></div>
      <table class={css.table} role="grid" aria-label={t('Traces')} aria-rowcount={traces.length + 1}>
        <thead role="rowgroup">
          <tr role="row">
            <th scope="col" role="columnheader" class={css.pick}><span class="visually-hidden">{t('Compare')}</span></th>
            <th scope="col" role="columnheader" class={css.start}>{head}</th>
            <th scope="col" role="columnheader" class={css.root}>{t('Root')}</th>
            <th scope="col" role="columnheader" class={css.number}>{t('Duration')}</th>
            <th scope="col" role="columnheader" class={css.number}>{t('Spans')}</th>
            <th scope="col" role="columnheader" class={css.number}>{t('Services')}</th>
            <th scope="col" role="columnheader" class={css.name}>{t('File')}</th>
            <th scope="col" role="columnheader" class={css.id}>{t('Trace ID')}</th>
          </tr>
        </thead>
        <tbody role="rowgroup" {...rows.body}>
          {traces.map((trace, i) => (
            <tr key={trace.traceID} role="row" aria-rowindex={i + 2} {...rows.row(i)}>
              <td role="gridcell" class={css.pick}><Pick name={`${trace.rootName} ${shortID(trace.traceID)}`} checked={checked.includes(trace.traceID)} onCheck={() => check(trace.traceID)} /></td>
              <td role="gridcell" class={css.start}><Start trace={trace} /></td>
              <td role="gridcell" class={css.root}><Root trace={trace} href={href(trace)} /></td>
              <td role="gridcell" class={css.number}>{duration(trace.duration)}</td>
              <td role="gridcell" class={css.number}>{count(trace.spans)}</td>
              <td role="gridcell" class={css.number}>{count(trace.services)}</td>
              <td role="gridcell" class={css.name} title={trace.file}>{trace.file}</td>
              <td role="gridcell" class={css.id} title={trace.traceID}>{shortID(trace.traceID.replace(/^0{16}/, ''))}</td>
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
    <span class={css.rootCell}>
      <ServiceSwatch name={trace.rootService} />
      <a class={css.link} href={href} tabIndex={-1} title={`${trace.rootService}: ${trace.rootName}`}>{trace.rootName} <span class={css.service}>{trace.rootService}</span></a>
      {trace.errors > 0 && <Badge kind="error" title={t('{errors} spans with errors', { errors: count(trace.errors) })}><Mark kind="error" size={11} label={t('errors:')} />{count(trace.errors)}</Badge>}
      {trace.orphans > 0 && <Badge title={t('Incomplete: the parents of {orphans} spans are not in the files', { orphans: count(trace.orphans) })}><Mark kind="partial" size={11} label={t('incomplete, missing parents:')} />{count(trace.orphans)}</Badge>}
    </span>
  );
}
