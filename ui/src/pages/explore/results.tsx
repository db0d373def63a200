import { useEffect, useMemo, useState } from 'preact/hooks';
import { CompareLink, useChecks } from '../../compare/pick';
import type { Explanation } from '../../api/explain';
import type { Facets, Heatmap } from '../../api/types';
import { Button, TabPanel, Tabs } from '../../shell/controls';
import { capable } from '../../shell/config';
import { count } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { lazy } from '../../shell/lazy';
import { announce } from '../../shell/live-region';
import { AnswerState, Empty, Partial, Skeleton } from '../../shell/states';
import { t } from '../../shell/text';
import { navigate, view } from '../../shell/url';
import { useRequest, type RequestState } from '../../shell/use-request';
import { ColumnsMenu } from './columns-menu';
import type { Run } from './run';
import { OrderChoice } from './order-choice';
import { ShareButton } from './share-button';
import type { Slowest } from './slowest';
import { parseSort, sortTraces } from './sort';
import { chosenTab, offeredTabs } from './tabs';
import { TraceTable } from './trace-table';
import { usePaths } from './use-paths';
import type { useSearch } from './use-search';
import css from './results.module.css';

const NoMatch = lazy(() => import('./no-match'));

interface ResultsProps {
  search: ReturnType<typeof useSearch>;
  /** The part of the run that is searched, if the slowest are listed. */
  slowest: Slowest | null;
  run: Run;
  /** The request for the bound of the selected slowest ones, while that is not known. */
  bound: RequestState<Explanation> | null;
  /** The search of which the run is the selected part; otherwise null. */
  whole: Run | null;
  heat: RequestState<Heatmap>;
  /** Fields shown as columns. */
  fields: string[];
  facets: Facets | undefined;
  /** Number of selected traces or spans, if it is known. */
  selected: number | undefined;
  onRun: (text: string) => void;
}

/** The traces of the search, and examples of its spans. */
export function Results({ search, slowest, run, bound, whole, heat, fields, facets, selected, onRun }: ResultsProps) {
  const { tab, sort } = view.value;
  const total = useTotal(run, heat);
  const chosen = chosenTab(tab);
  const shownTab = chosen?.id ?? 'traces';
  const next = search.outcome?.next;
  const listing = !chosen && !bound;
  const exact = isExact(search, slowest);
  const listed = slowest && search.run !== run ? slowest.shown : undefined;
  const traces = useMemo(() => sortTraces(search.traces, sort).slice(0, listed), [search.traces, sort, listed]);
  const checks = useChecks(traces);
  const paths = usePaths(traces, !search.reading && listing);
  const status = bound ? '' : statusOf(search, traces.length, total, sort, exact);
  useEffect(() => { if (!search.reading && status) announce(whole ? t('Selected traces: {status}', { status }) : t('Traces: {status}', { status })); }, [search.reading, status]);
  return (
    <section aria-label={t('Results')} class={css.results}>
      <h2 class="visually-hidden">{t('Results')}</h2>
      <div class={css.tabs}>
        <Tabs
          label={t('Results')} name="results" selected={shownTab} onSelect={(id) => navigate({ tab: id === 'traces' ? '' : id }, { replace: true })}
          tabs={[{ id: 'traces', label: t('Traces') }, ...offeredTabs().map((o) => ({ id: o.id, label: o.label(), count: o.id === 'explain' && selected !== undefined ? count(selected) : undefined }))]}
          end={<>
            {listing && <CompareLink checked={checks.checked} pair={(a, b) => ({ page: 'compare', a, b })} alone="baseline" />}
            {listing && <><span class={css.status}>{(search.reading || search.outcome?.complete === false) && <Mark kind="partial" size={13} label="" />}{status}</span><OrderChoice /></>}
            <ShareButton run={whole ?? run} />
            {!chosen && <span class={css.columns}><ColumnsMenu fields={fields} facets={facets} period={() => ({ start: run.start, end: run.end })} /></span>}
          </>}
        />
      </div>
      <TabPanel name="results" selected={shownTab} class={css.panel}>
        {bound && !chosen?.selects ? <Unbound bound={bound} /> : chosen ? <chosen.View key={chosen.id} run={chosen.selects ? whole ?? run : run} onRun={onRun} /> : <>
          {search.outcome?.reason && <div class={css.notice}><Partial>{sentence(search.outcome.reason)}</Partial></div>}
          {traces.length > 0 && <TraceTable traces={traces} fields={fields} run={slowest && search.run === slowest.run ? run : search.run ?? run} checked={checks.checked} onCheck={checks.check} paths={paths} />}
          {traces.length === 0 && search.reading && <div class={css.notice}><Skeleton rows={8} height="var(--row-h-table)" /></div>}
          {traces.length === 0 && !search.reading && !search.error && !next && (whole ? <Unselected title={t('The selection contains no traces.')} /> : <NoMatch run={run} onRun={onRun} />)}
          {(traces.length > 0 || (next && !search.reading)) && <More search={search} more={slowest && exact ? slowest.more : next ? search.more : null} />}
        </>}
      </TabPanel>
    </section>
  );
}

/** In place of the slowest ones, while the duration that they reach is not known: never all traces instead. */
function Unbound({ bound }: { bound: RequestState<Explanation> }) {
  if (bound.data && !bound.error && !bound.loading) return <Unselected title={t('The selection contains no traces.')} />;
  return <AnswerState what={t('Slowest 5 %')} answer={{ ...bound, data: undefined }} class={css.notice} rows={8} height="var(--row-h-table)" />;
}

function Unselected({ title }: { title: string }) {
  return <div class={css.notice}><Empty title={title}><Button onClick={() => navigate({ sel: null })}>{t('Clear the selection')}</Button></Empty></div>;
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.]$/.test(text) ? '' : '.');
}

/** Number of traces of all pages. `exact` is false if it is an estimate, `least` is true if the store did not count all. */
interface Total {
  n: number;
  exact: boolean;
  least: boolean;
}

function useTotal(run: Run, heat: RequestState<Heatmap>): Total | null {
  // Without conditions, counting traces means to read all of them.
  const own = view.value.of === 'spans' && run.q !== '' && capable('aggregates');
  const traces = useRequest<Heatmap>(own ? 'heatmap' : null, { q: run.q, start: run.start, end: run.end, of: 'traces', columns: 2, exemplars: 1 }, { maxAge: 300_000 });
  const { data, messages, loading } = own ? traces : heat;
  if (!data || loading || data.of !== 'traces') return null;
  return { n: data.estimatedSpans, exact: data.share === 1, least: messages.length > 0 };
}

/** Whether the slowest traces are all known. */
function isExact(search: ResultsProps['search'], slowest: Slowest | null): boolean {
  return !!slowest && search.run === slowest.run && !search.reading && !!search.outcome?.complete && !search.outcome.next;
}

/** "50 of 12,431, newest first, still reading". */
function statusOf(search: ResultsProps['search'], n: number, total: Total | null, sort: string, exact: boolean): string {
  if (n === 0 && search.error) return '';
  const all = !exact && !search.reading && !!search.outcome?.complete && !search.outcome.next;
  if (n === 0 && all) return '0';
  const order = exact ? t('slowest first') : parseSort(sort) ? (all ? t('sorted') : t('only these are sorted')) : t('newest first');
  const state = search.reading ? t('still reading') : search.error?.status === 400 ? t('of the previous search') : search.error || (search.outcome?.complete === false && search.outcome.reason) ? t('not complete') : '';
  return [shownOf(n, all ? null : total), order, state].filter(Boolean).join(', ');
}

function shownOf(shown: number, total: Total | null): string {
  if (!total || total.n <= shown) return count(shown);
  const values = { shown: count(shown), all: count(total.n) };
  return total.least ? t('{shown} of at least {all}', values) : total.exact ? t('{shown} of {all}', values) : t('{shown} of about {all}', values);
}

function More({ search, more }: { search: ResultsProps['search']; more: (() => void) | null }) {
  const [pressed, setPressed] = useState(false);
  useEffect(() => { if (!search.reading) setPressed(false); }, [search.reading]);
  if (!more) return <p class={css.end}>{search.reading || search.error ? '' : t('No more traces in this time range.')}</p>;
  return <div class={css.more}><Button aria-disabled={search.reading ? 'true' : undefined} onClick={() => { setPressed(true); more(); }}>{pressed && search.reading ? t('Reading') : t('Show more')}</Button></div>;
}
