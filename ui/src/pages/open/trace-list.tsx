import { useState } from 'preact/hooks';
import { Badge, Input } from '../../shell/controls';
import { count, duration, shortID, zoneName } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { slowNow } from '../../shell/clock';
import { zone } from '../../shell/preferences';
import { ServiceSwatch } from '../../shell/service-mark';
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
  const matching = traces.filter((t) => words.every((w) => `${t.rootService} ${t.rootName} ${t.traceID} ${t.file}`.toLowerCase().includes(w)));
  const listed = matching.slice(0, maxListed);
  return (
    <section aria-label="Traces">
      {traces.length >= filtered && (
        <div class={css.tools}>
          <Input type="search" icon="search" class={css.filter} aria-label="Filter traces" placeholder="Service, operation, trace ID or file" value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
          <span class={css.shown} role="status">{matching.length > listed.length ? `${count(listed.length)} of ${count(matching.length)}` : count(matching.length)}, newest first</span>
        </div>
      )}
      {listed.length > 0 ? <Table traces={listed} /> : <p class={css.none}>No trace contains these words.</p>}
    </section>
  );
}

function Table({ traces }: { traces: FileTrace[] }) {
  const href = (t: FileTrace): string => link({ page: 'open', id: t.traceID });
  const rows = useRows(traces.length, (i) => href(traces[i]));
  const head = `Start (${zoneName(zone.value, slowNow.value)})`;
  return (
    <table class={css.table} role="grid" aria-label="Traces" aria-rowcount={traces.length + 1}>
      <thead role="rowgroup">
        <tr role="row">
          <th scope="col" role="columnheader" class={css.start}>{head}</th>
          <th scope="col" role="columnheader" class={css.root}>Root</th>
          <th scope="col" role="columnheader" class={css.number}>Duration</th>
          <th scope="col" role="columnheader" class={css.number}>Spans</th>
          <th scope="col" role="columnheader" class={css.number}>Services</th>
          <th scope="col" role="columnheader" class={css.name}>File</th>
          <th scope="col" role="columnheader" class={css.id}>Trace ID</th>
        </tr>
      </thead>
      <tbody role="rowgroup" {...rows.body}>
        {traces.map((t, i) => (
          <tr key={t.traceID} role="row" aria-rowindex={i + 2} {...rows.row(i)}>
            <td role="gridcell" class={css.start}><Start trace={t} /></td>
            <td role="gridcell" class={css.root}><Root trace={t} href={href(t)} /></td>
            <td role="gridcell" class={css.number}>{duration(t.duration)}</td>
            <td role="gridcell" class={css.number}>{count(t.spans)}</td>
            <td role="gridcell" class={css.number}>{count(t.services)}</td>
            <td role="gridcell" class={css.name} title={t.file}>{t.file}</td>
            <td role="gridcell" class={css.id} title={t.traceID}>{shortID(t.traceID.replace(/^0{16}/, ''))}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}


function Start({ trace }: { trace: FileTrace }) {
  if (trace.start === '0') return <>no time</>;
  return <Time at={trace.start} precision={1} />;
}

function Root({ trace: t, href }: { trace: FileTrace; href: string }) {
  return (
    <span class={css.rootCell}>
      <ServiceSwatch name={t.rootService} />
      <a class={css.link} href={href} tabIndex={-1} title={`${t.rootService}: ${t.rootName}`}>{t.rootName} <span class={css.service}>{t.rootService}</span></a>
      {t.errors > 0 && <Badge kind="error" title={`${count(t.errors)} spans with errors`}><Mark kind="error" size={11} label="errors:" />{count(t.errors)}</Badge>}
      {t.orphans > 0 && <Badge title={`Incomplete: the parents of ${count(t.orphans)} spans are not in the files`}><Mark kind="partial" size={11} label="incomplete, missing parents:" />{count(t.orphans)}</Badge>}
    </span>
  );
}
