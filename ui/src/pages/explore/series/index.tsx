import { useMemo, useRef, useState } from 'preact/hooks';
import { TimeChart, type ChartDot } from '../../../charts/time-chart';
import type { MetricsQuery } from '../../../query/metrics';
import { slowNow } from '../../../shell/clock';
import { Button, classes } from '../../../shell/controls';
import { axisDuration, count, iso, short, time } from '../../../shell/format';
import { Icon } from '../../../shell/icons';
import { Name } from '../../../shell/name';
import { zone } from '../../../shell/preferences';
import { useRovingRows } from '../../../shell/roving';
import { Empty, Messages, Skeleton } from '../../../shell/states';
import { t, tn } from '../../../shell/text';
import { link, navigate } from '../../../shell/url';
import type { RequestState } from '../../../shell/use-request';
import type { Run } from '../run';
import { ShareButton } from '../share-button';
import { seriesOf, type Column, type Series, type SeriesAnswer, type SeriesData } from './model';
import css from './series.module.css';

/** Properties of the panel of series. */
export interface SeriesProps {
  answer: RequestState<SeriesAnswer>;
  metrics: MetricsQuery;
  run: Run;
}

const maxLines = 10;
const rowsPerStep = 100;

/** The series of a metrics query: lines, examples that open their traces, and a table. */
export default function SeriesPanel({ answer, metrics, run }: SeriesProps) {
  const [[chosen, down], sort] = useState<[number, boolean]>([-1, true]); // -1: the last column
  const shown = useRef<{ data: SeriesData; inSeconds: boolean; message: string } | null>(null);
  useMemo(() => { // what a query before has returned stays as it was
    if (answer.data && !answer.loading && !answer.error) shown.current = { data: seriesOf(answer.data, metrics, run), inSeconds: metrics.inSeconds, message: answer.data.message ?? '' };
  }, [answer.data, answer.loading, answer.error]);
  const list = useMemo(() => [...(shown.current?.data.list ?? [])].sort((a, b) => (a.figures.at(chosen)! - b.figures.at(chosen)!) * (down ? -1 : 1)), [shown.current, chosen, down]);
  if (!shown.current) return answer.error ? null : <div class={css.notice}><Skeleton rows={8} height="var(--row-h-table)" /></div>;
  const { data, inSeconds, message } = shown.current;
  const { times, end, columns } = data;
  const drawn = times.length > 0 ? list.slice(0, maxLines) : [];
  const { format } = columns[0];
  const column = chosen < 0 || chosen >= columns.length ? columns.length - 1 : chosen;
  return (
    <section class={css.panel} aria-label={t('Series')}>
      <div class={css.head}>
        <span>{!metrics.compares && <b>{tn(list.length, '{n} series', '{n} series', { n: count(list.length) })}</b>}{list.length > drawn.length && drawn.length > 0 && <span class={css.faint}>{t(', lines of the first {n}', { n: drawn.length })}</span>}</span>
        <span class={css.grow} />
        <ShareButton run={run} />
      </div>
      {message && <div class={css.notice}><Messages messages={[{ msg: message }]} /></div>}
      {list.length === 0 && <div class={css.notice}><Empty title={t('No span matches in this time range.')} /></div>}
      {drawn.length > 0 && (
        <div class={css.chart} data-chart>
          <TimeChart
            label={t('Series')} times={times} end={end} lines={drawn} nameless dots={drawn.flatMap((s) => dotsOf(s, format))} zone={zone.value} height={216}
            format={format} axis={inSeconds ? (n) => axisDuration(n * 1e9) : short} onSelect={(from, to) => navigate({ range: { from: iso(from), to: iso(to) } })}
          />
        </div>
      )}
      {list.length > 0 && <SeriesTable list={list} drawn={drawn.length} columns={columns} column={column} down={down} onSort={(i) => sort([i, i !== column || !down])} />}
    </section>
  );
}

function dotsOf(s: Series, format: (n: number) => string): ChartDot[] {
  return s.examples.map((e) => ({ at: e.at, value: e.value, color: s.color, href: traceLink(e.trace), label: `${s.name}: ${format(e.value)}. ${t('Open the trace')}` }));
}

function traceLink(id: string): string {
  return link({ page: 'trace', id });
}

interface SeriesTableProps {
  list: Series[];
  /** How many of the first have lines. */
  drawn: number;
  columns: Column[];
  column: number;
  down: boolean;
  onSort: (column: number) => void;
}

function SeriesTable({ list, drawn, columns, column, down, onSort }: SeriesTableProps) {
  const [rows, setRows] = useState(rowsPerStep);
  const table = useRef<HTMLTableElement>(null);
  useRovingRows(table);
  const examples = list.some((s) => s.examples.length > 0);
  return (
    <>
      <table ref={table} class={css.table} role="grid" aria-label={t('Series')} aria-rowcount={list.length + 1}>
        <thead>
          <tr>
            <th scope="col">{t('Name')}</th>
            {columns.map(({ label }, i) => (
              <th key={i} scope="col" class={css.number} aria-sort={i !== column ? undefined : down ? 'descending' : 'ascending'}>
                <button type="button" class={css.sort} onClick={() => onSort(i)}>{label}{i === column && <Icon name={down ? 'down' : 'up'} size={12} />}</button>
              </th>
            ))}
            {examples && <th scope="col" class={css.example}>{t('Example')}</th>}
          </tr>
        </thead>
        <tbody>
          {list.slice(0, rows).map((s, row) => (
            <tr key={s.title} data-row>
              <th scope="row"><span class={css.name}>{drawn > 0 && <i class={css.swatch} style={row < drawn ? { background: s.color } : undefined} />}<Name text={s.name} title={s.title} /></span></th>
              {columns.map(({ format }, i) => <td key={i} class={classes(css.number, i !== column && css.other)}>{format(s.figures[i])}</td>)}
              {examples && <td class={css.example}><ExampleLink s={s} /></td>}
            </tr>
          ))}
        </tbody>
      </table>
      {list.length > rows && <p class={css.notice}><Button kind="quiet" onClick={() => setRows(rows + rowsPerStep)}>{t('Show more')}</Button></p>}
    </>
  );
}

/** The example with the largest value. */
function ExampleLink({ s }: { s: Series }) {
  const [best] = [...s.examples].sort((a, b) => b.value - a.value || b.at - a.at);
  return best ? <a href={traceLink(best.trace)} title={t('Open the trace')}>{time(best.at, zone.value, slowNow.value, 1)}</a> : null;
}
