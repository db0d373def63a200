import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Params } from '../../api/client';
import type { Explanation } from '../../api/explain';
import type { Facets, Heatmap } from '../../api/types';
import { addCondition, searchOf } from '../../query/edit';
import { remember } from '../../query/history';
import { problemIn } from '../../query/problem';
import { metricsOf } from '../../query/metrics';
import { parseQuery } from '../../query/parse';
import { capable } from '../../shell/config';
import { Button } from '../../shell/controls';
import { Dialog } from '../../shell/dialog';
import { lazy } from '../../shell/lazy';
import { Failure, Partial, Progress } from '../../shell/states';
import { t } from '../../shell/text';
import { useTitle } from '../../shell/title';
import { parseTraceRef } from '../../shell/trace-id';
import { linked, navigate, view } from '../../shell/url';
import { useRequest, type RequestState } from '../../shell/use-request';
import { boxOfSelection, explainParams, selectedCount, selectedRun } from './explain/selection';
import { HeatmapPanel } from './heatmap-panel';
import { Results } from './results';
import { useRun, type Run } from './run';
import { SearchHead } from './search-head';
import type { SeriesProps } from './series';
import type { SeriesAnswer } from './series/model';
import { useSlowest } from './slowest';
import { stepOf } from './step';
import { useSearch } from './use-search';
import css from './explore.module.css';

const Examples = lazy(() => import('./examples'));
const Live = lazy(() => import('./live'));
const FacetList = lazy(() => import('./facets'));
const SeriesPanel = lazy<SeriesProps>(() => import('./series'));
const Trail = lazy(() => import('./trail'));

/** Explore: stored traces, or with `live=1` those that arrive. */
export default function ExplorePage() {
  useTitle(t('Explore'));
  useImport();
  return view.value.live ? <Live /> : <Stored />;
}

/** Imports the saved searches that the link carries, once. */
function useImport(): void {
  const { saved } = view.value;
  useEffect(() => {
    if (!saved) return;
    navigate({ saved: '' }, { replace: true });
    void Promise.all([import('../../query/searches-panel'), import('../../query/saved')]).then(([panel, { decodeSaved }]) => panel.importSaved(decodeSaved(saved)));
  }, [saved]);
}

/** Search: the search as form and text, all matches as heatmap and facets, and the traces, newest first. */
function Stored() {
  const { q, of, sel, cols, limit, sort, tab, embed, embedOptions } = view.value;
  const { run, again } = useRun();
  const [draft, setDraft] = useState(q);
  useEffect(() => setDraft(q), [q]);
  const fields = useMemo(() => [...new Set([...run.select, ...cols])], [run, cols.join('\n')]);
  const metrics = useMemo(() => metricsOf(run.q), [run]);
  const { part, bound, explained } = useSelected(run, !metrics);
  const listed = part ?? run;
  const slowest = useSlowest(listed, metrics ? '' : sort);
  const search = useSearch(metrics ? null : slowest?.run ?? listed, fields, slowest?.limit ?? limit);
  const series = useRequest<SeriesAnswer>(metrics && `/tempo/api/metrics/query${metrics.compares ? '' : '_range'}`, { ...period(run), q: run.q, step: metrics?.compares ? undefined : stepOf(run.to - run.from) }, kept);
  const error = metrics ? series.error : search.error;
  const wrong = error?.status === 400 ? error.message : null;
  const problem = draft === q && wrong !== null ? problemIn(wrong, run.q) ?? { message: wrong, begin: 0, end: 0 } : null;
  // While a search is wrong, the page shows the last one that was not.
  const last = useRef<Run | null>(null);
  if (!metrics && !search.reading && !search.error && search.run === (slowest?.run ?? listed)) last.current = run;
  const shown = wrong === null ? run : last.current;
  const counted = capable('aggregates');
  const explaining = tab === 'explain' && counted && !metrics; // needs the width
  // The first traces come before the counts, which take the server longer.
  const counting = useSoon(run, search.run === listed || shown !== run) && counted && shown !== null;
  const counts = shown ?? run;
  const heat = useRequest<Heatmap>(counting && !metrics ? 'heatmap' : null, heatParams(counts, of), kept);
  const chosen = part && shown === run ? part : counts;
  const selected = useMemo(() => selectedCount(sel, heat.data, explained), [sel, heat.data, explained]);
  // The cells of a box have its count. A heatmap of its time would also count traces that began before.
  const boxed = chosen !== counts && of === 'traces' && !!boxOfSelection(sel);
  const heatOfPart = useRequest<Heatmap>(counting && chosen !== counts && !boxed ? 'heatmap' : null, heatParams(chosen, of), kept);
  // The facets of a metrics query are those of the spans that it counts.
  const set = metrics && parseQuery(metrics.set) ? metrics.set : null;
  const faceted = !metrics || set !== null ? { ...chosen, q: set ?? chosen.q } : null;
  const facets = useRequest<Facets>(counting && !explaining && !bound && faceted ? 'compare' : null, { ...rangeOf(faceted ?? run), sel_q: '{ error }', values: 40 }, kept);
  const listHeat = boxed ? { ...heat, data: heat.data && { ...heat.data, estimatedSpans: selected! } } : chosen === counts ? heat : heatOfPart;
  const content = useKeptScroll(run);
  const [sheet, setSheet] = useState(false);
  const execute = (text: string): void => {
    const ref = parseTraceRef(text);
    if (ref && ref.trace.length >= 16) return navigate(linked({ page: 'trace', id: ref.trace }, { span: ref.span }));
    const next = searchOf(text);
    remember(next);
    setDraft(next);
    if (next === q) again();
    else navigate({ q: next, sel: null });
  };
  // A condition narrows what is selected; the selection stays.
  const filter = (field: string, op: string, value: string): void => {
    const next = metrics ? `${addCondition(metrics.set, field, op, value)} ${metrics.rest}` : addCondition(q, field, op, value);
    remember(next);
    navigate({ q: next });
  };
  // Jaeger's embed mode shows the results only, and on request not the chart.
  const plain = embed && embedOptions.uiEmbed === 'v0';
  const chart = counted && shown && !(plain && embedOptions.uiSearchHideGraph === '1');
  const facetsNeeded = useRef(false); // their code is loaded after the first traces, too
  facetsNeeded.current ||= counting;
  const list = !bound && faceted && facetsNeeded.current && <FacetList answer={facets} run={faceted} onFilter={filter} />;
  return (
    <div class={css.page}>
      <h1 class="visually-hidden">{t('Explore')}</h1>
      {!plain && (
        <SearchHead draft={draft} onDraft={setDraft} onRun={execute} problem={problem} period={() => period(run)}>
          {counted && !explaining && faceted && <Button class={css.sheetButton} icon="filter" label={t('Facets')} onClick={() => setSheet(true)} />}
        </SearchHead>
      )}
      {!plain && <Trail />}
      <Progress active={search.reading || heat.loading || series.loading} label={t('Searching')} />
      {sheet && <Dialog title={t('Facets')} onClose={() => setSheet(false)} class={css.sheet}>{list}</Dialog>}
      <div class={css.columns}>
        {counted && shown && !plain && !explaining && faceted && <aside class={css.rail} aria-label={t('Facets')}>{list}</aside>}
        <div ref={content} class={css.content}>
          {!counted && <div class={css.notice}><Partial>{t('This server\'s store cannot count spans, so heatmap and facets are not available.')}</Partial></div>}
          {chart && !metrics && <HeatmapPanel answer={heat} run={shown} selected={selected} />}
          {error && wrong === null && <div class={css.notice}><Failure what={t('Search')} error={error} retry={again} /></div>}
          {metrics && <SeriesPanel answer={series} metrics={metrics} run={run} />}
          {!shown && !(metrics && series.data) && <Examples onRun={execute} />}
          {shown && !metrics && <Results search={search} bound={shown === run ? bound : null} slowest={shown === run ? slowest : null} run={shown === run ? listed : shown} whole={chosen !== counts ? run : null} heat={counting ? listHeat : { ...listHeat, loading: true }} fields={fields} facets={facets.data} selected={selected} onRun={execute} />}
        </div>
      </div>
    </div>
  );
}

/**
 * The selected part of a run; null if nothing is selected, or while Explain compares it with the rest.
 * Without `selects`, nothing is.
 * `bound` is the request for the duration that the slowest ones reach, as long as the part is not known without it.
 * `explained` is what Explain has found, which the tab asks for too: the duration, and how many are selected.
 */
function useSelected(run: Run, selects: boolean): { part: Run | null; bound: RequestState<Explanation> | null; explained: Explanation | undefined } {
  const { of, tab, ...rest } = view.value;
  const sel = selects ? rest.sel : null;
  const explaining = tab === 'explain' && selects;
  const slowest = sel === 'slowest' && !explaining;
  const params = capable('aggregates') && (slowest || explaining) ? explainParams(run, view.value) : null;
  const answer = useRequest<Explanation>(params && 'explain', params ?? {}, kept);
  const explained = !params || answer.loading || answer.error ? undefined : answer.data;
  const part = explaining ? null : selectedRun(run, { sel, of }, explained?.selected.least);
  return { part, bound: slowest && !part ? answer : null, explained };
}

let scrolled: { run: Run; top: number } | null = null;

/** After a return to the page, the results are at the same place. */
function useKeptScroll(run: Run) {
  const content = useRef<HTMLDivElement>(null);
  const current = useRef(run);
  current.current = run;
  useLayoutEffect(() => {
    const element = content.current!;
    if (scrolled?.run === run) element.scrollTop = scrolled.top;
    return () => { scrolled = { run: current.current, top: element.scrollTop }; };
  }, []);
  return content;
}

// A return to the page shows the same counts as before.
const kept = { maxAge: 300_000 };

const patience = 250; // ms
/** Milliseconds in which the first traces are drawn. */
const twoFrames = 50;

/** Whether what was `ready` has been drawn, or some time has passed since the start of the run. */
function useSoon(run: Run, ready: boolean): boolean {
  const [late, setLate] = useState(ready ? run : null);
  useEffect(() => {
    const timer = setTimeout(() => setLate(run), ready ? twoFrames : patience);
    return () => clearTimeout(timer);
  }, [run, ready]);
  return late === run;
}

function period(run: Run): { start: string; end: string } {
  return { start: run.start, end: run.end };
}

function heatParams(run: Run, of: Heatmap['of']): Params {
  return { ...rangeOf(run), of, exemplars: 500, step: of === 'traces' ? stepOf(run.to - run.from) : undefined };
}

/** Parameters of requests for all matches. */
export function rangeOf(run: Run): { q: string; start: string; end: string } {
  return { q: run.q, ...period(run) };
}
