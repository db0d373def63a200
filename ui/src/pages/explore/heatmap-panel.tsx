import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { stream } from '../../api/client';
import type { Changes, Heatmap, SearchLine, TraceSummary } from '../../api/types';
import { slowestExemplar } from '../../charts/exemplar';
import { HeatmapChart, type TimeMark } from '../../charts/heatmap';
import { gridOf, lowestLevel, thingsText } from '../../charts/heatmap-model';
import { conditionsOn, setBounds } from '../../query/edit';
import { durationText, round3 } from '../../query/field';
import { Button, classes, Segmented } from '../../shell/controls';
import { about, count, duration, iso, millis, nanos, percent } from '../../shell/format';
import { lazy } from '../../shell/lazy';
import { announce } from '../../shell/live-region';
import { AnswerState, Messages } from '../../shell/states';
import { t, Text, TextN } from '../../shell/text';
import { toast } from '../../shell/toast';
import { link, linked, navigate, view, type Box } from '../../shell/url';
import { useRequest, type RequestState } from '../../shell/use-request';
import { BaselineChoice, NamedSelection, ExplainButton, ExplainButtons } from './explain/choice';
import { boxOfSelection } from './explain/selection';
import { markedSearch } from './links';
import { marksOf } from './marks';
import type { Run } from './run';
import css from './heatmap-panel.module.css';

const HeatmapTable = lazy<{ data: Heatmap }>(() => import('../../charts/heatmap-table'));

interface HeatmapPanelProps {
  answer: RequestState<Heatmap>;
  run: Run;
  /** Number of selected traces or spans, if it is known. */
  selected: number | undefined;
}

/** The heatmap with its head: what is counted, the legend, and the actions on a selection. */
export function HeatmapPanel({ answer, run, selected }: HeatmapPanelProps) {
  const { of, sel, tab } = view.value;
  const box = boxOfSelection(sel);
  const [table, setTable] = useState(false);
  const { data } = answer;
  const marks = useMarks(run, !!data || answer.loading);
  const open = useOpenCell(run, data);
  useEffect(() => { if (box && selected !== undefined && tab !== 'explain') announce(t('{count} selected', { count: count(selected) })); }, [box, selected]);
  if (answer.error && !data) return <AnswerState what={t('Heatmap')} answer={answer} class={css.failure} />;
  return (
    <section aria-label={t('Heatmap of durations')} class={classes(css.panel, tab === 'explain' && css.low)} data-chart>
      <div class={css.head}>
        <Totals data={data} />
        <Segmented
          label={t('Durations of')} value={of} onChange={(v) => navigate({ of: v, sel: null })}
          segments={[{ value: 'traces', label: t('Trace duration'), title: t('Each trace counts once, with its whole duration') }, { value: 'spans', label: t('Span duration'), title: t('Each matching span counts, with its own duration') }]}
        />
        {data && <Legend data={data} />}
        <span class={css.grow} />
        {tab === 'explain' && sel && <BaselineChoice />}
        {box && selected !== undefined && <Selection box={box} n={selected} of={of} run={run} />}
        {typeof sel === 'string' && <NamedSelection n={selected} />}
        {!sel && <>{data && <ExplainButtons data={data} />}<Button kind="quiet" class={css.table} aria-pressed={table} onClick={() => setTable(!table)}>{t('Table view')}</Button></>}
      </div>
      {data && table && <HeatmapTable data={data} />}
      {data && !table && <HeatmapChart data={data} box={box} marks={marks} onBox={(next) => navigate({ sel: next }, { replace: !!next && !!sel })} onOpen={open} example={(cell) => exampleText(data, cell)} />}
      {!data && <div class={css.blank}><span>{t('Counting durations of {things}', { things: thingsText(of) })}</span></div>}
      <Notices answer={answer} />
    </section>
  );
}

/** Number of all matches. Estimates say so. */
function Totals({ data }: { data: Heatmap | undefined }) {
  if (!data) return <span class={css.totals}>{'\u00a0'}</span>;
  const of = data.of ?? 'spans';
  const text = (n: number): string => about(count(n), data.share < 1);
  const n = <b>{text(data.estimatedSpans)}</b>;
  return (
    <span class={css.totals}>
      {of === 'traces' ? <TextN count={data.estimatedSpans} one="{n} trace" other="{n} traces" n={n} /> : <TextN count={data.estimatedSpans} one="{n} span" other="{n} spans" n={n} />}
      {data.share < 1 && <span class={css.sample} title={sampleText(data)}>{t(' ({share} examined)', { share: percent(data.share) })}</span>}
      {data.estimatedErrors > 0 && <><span class={css.dot}>·</span><a class={css.errors} href={link({ page: 'explore' }, { q: view.value.q, of, sel: 'errors' })}>{t('{estimatedSpans} with errors', { estimatedSpans: data.estimatedErrors === data.estimatedSpans ? t('all') : text(data.estimatedErrors) })}</a></>}
    </span>
  );
}

function Legend({ data }: { data: Heatmap }) {
  const max = useMemo(() => gridOf(data).max, [data]);
  if (max === 0) return null;
  const low = lowestLevel(max);
  return (
    <span class={css.legend} title={t('Lightness shows the number of {things} in a cell, hue shows the share of errors', { things: thingsText(data.of ?? 'spans') })}>{max > 1 && <><span>1</span><span class={css.ramp}>{Array.from({ length: 8 - low }, (_, i) => <i key={i} style={{ background: `var(--heat-ok-${low + i})` }} />)}</span></>}<span>{max === 1 ? t('1 a cell') : t('{max} a cell', { max: count(max) })}</span><Text of="{i}errors {percent}{i2}{percent2}" i={<span class={css.ramp}><i style={{ background: 'var(--heat-mix-4)' }} /></span>} percent={percent(0.05)} i2={<span class={css.ramp}><i style={{ background: 'var(--heat-err-4)' }} /></span>} percent2={percent(0.5)} /></span>
  );
}

/** What the selection is, and what can be done with it. */
function Selection({ box, n, of, run }: { box: Box; n: number; of: 'traces' | 'spans'; run: Run }) {
  const range = { from: iso(Math.max(box.t0, run.from)), to: iso(Math.min(box.t1, run.to)) };
  const field = of === 'traces' ? 'trace.duration' : 'duration';
  const filter = (): void => navigate({ q: setBounds(view.value.q, field, durationText(round3(box.d0, Math.floor)), durationText(round3(box.d1, Math.ceil))), range, sel: null });
  return (
    <span class={css.selection}>
      {/* Explain says how many it compares; on small screens, the button says it. */}
      {view.value.tab !== 'explain' && <b class={css.large}>{t('{n} selected', { n: count(n) })}</b>}
      <ExplainButton n={n} />
      <Button kind="quiet" onClick={filter} title={t('Search for the selected durations and time')}>{t('Filter')}</Button>
      <Button kind="quiet" onClick={() => navigate({ range, sel: null })} title={t('Show the selected time')}>{t('Zoom')}</Button>
      <Button kind="quiet" icon="x" label={t('Clear the selection')} onClick={() => navigate({ sel: null })} />
    </span>
  );
}

/** Why the counts are not complete. */
function Notices({ answer }: { answer: RequestState<Heatmap> }) {
  const { data, error, messages } = answer;
  if (!error && messages.length === 0) return null;
  return (
    <div class={css.notices}>
      <Messages messages={messages} />
      {data && <AnswerState what={t('Heatmap')} answer={answer} />}
    </div>
  );
}

/** New versions of services, as lines. They are a help: an error hides them. */
function useMarks(run: Run, wanted: boolean): TimeMark[] {
  const { data } = useRequest<Changes>(wanted ? 'changes' : null, { start: run.start, end: run.end });
  return useMemo(() => marksOf(data?.changes ?? [], run.from, run.to, conditionsOn(run.q, 'service').map((c) => c.value)), [data, run]);
}

/** Opens the slowest known example of a cell: of the heatmap, otherwise of a search for the cell. */
function useOpenCell(run: Run, data: Heatmap | undefined): (cell: Box) => void {
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);
  return (cell) => {
    const known = data && slowestExemplar(data, cell);
    if (known) return navigate(linked({ page: 'trace', id: known.trace }, { span: known.span, search: markedSearch(run.q) }));
    abort.current?.abort();
    abort.current = new AbortController();
    findInCell(run, cell, data?.of ?? 'spans', abort.current.signal).then((item) => {
      if (item) navigate(linked({ page: 'trace', id: item.traceID }, { span: item.matched?.ids[0] ?? '', search: markedSearch(run.q) }));
      else toast(t('No example of this cell was found.'));
    }, () => { if (!abort.current?.signal.aborted) toast(t('The example cannot be loaded.')); });
  };
}

/** "POST /checkout, 1.63 s". */
function exampleText(data: Heatmap, cell: Box): string {
  const e = slowestExemplar(data, cell);
  return e ? `${e.name || e.service}, ${duration(e.duration)}` : '';
}

/** What a sample means for the numbers. */
function sampleText(data: Heatmap): string {
  const error = data.relativeError ? ` (± ${percent(data.relativeError)})` : '';
  return t('The colors show a sample: {share} of the matching spans were examined. Totals are estimates{error}.', { share: percent(data.share), error });
}

const maxExamples = 100;

async function findInCell(run: Run, cell: Box, of: 'traces' | 'spans', signal: AbortSignal): Promise<TraceSummary | null> {
  const q = setBounds(run.q, of === 'traces' ? 'trace.duration' : 'duration', durationText(cell.d0), durationText(cell.d1));
  // A matching span of a trace can start until the end of the trace.
  const end = of === 'traces' ? Math.min(run.to, cell.t1 + cell.d1 / 1e6) : cell.t1;
  let best: TraceSummary | null = null;
  const line = (l: SearchLine): void => {
    if (l.trace && (of === 'spans' || millis(l.trace.start) >= cell.t0) && (!best || l.trace.duration > best.duration)) best = l.trace;
  };
  await stream<SearchLine>('search', { q, start: nanos(cell.t0), end: nanos(end), limit: maxExamples, matched: 1 }, line, signal);
  return best;
}
