import { useEffect, useMemo } from 'preact/hooks';
import { TabPanel } from '../shell/controls';
import { lazy } from '../shell/lazy';
import { view } from '../shell/url';
import { Header } from './header';
import { useTimelineKeys, useTraceKeys } from './keys';
import type { TraceModel, TraceSource } from './model/types';
import { TraceState } from './state';
import { chosenTab, traceTabs } from './tabs/tabs';
import { Waterfall } from './timeline/waterfall';
import { Toolbar } from './toolbar';
import { useRefresh } from './refresh';
import css from './trace-view.module.css';

/** Whether an option of the original's embed mode is set. */
function embedOption(name: string): boolean {
  const { embed, embedOptions } = view.peek(); // of the first URL
  return embed && embedOptions[name] === '1';
}

const DetailPanel = lazy<{ state: TraceState; span: number }>(() => import('./detail/panel'));
const Minimap = lazy<{ state: TraceState }>(() => import('./timeline/minimap'));
const Pattern = lazy(() => import('./pattern'));

/** Loads the parts that are shown later, so that a trace of a file needs no connection. */
export function preloadParts(): void {
  DetailPanel.preload();
  Minimap.preload();
  import('./trace-links').catch(() => undefined); // of the header
  for (const tab of traceTabs) tab.View.preload();
  const none = new Int32Array(0);
  const sizes = new Float32Array(0);
  // Starts the worker, which loads its program.
  import('../charts/graph-layout').then((m) => m.layoutGraph({ widths: sizes, heights: sizes, from: none, to: none }, new AbortController().signal)).catch(() => undefined);
}

/** A loaded trace: head, tabs and tools, the chosen tab, and the details of the selected span. */
export default function TraceView({ source, model }: { source: TraceSource; model: TraceModel }) {
  const state = useMemo(() => new TraceState(source, model), [source]);
  useEffect(() => () => state.close(), [state]);
  useEffect(DetailPanel.preload, []); // after the first rows
  useUsual(state);
  useRefresh(state);
  useTraceKeys(state);
  const tab = chosenTab(state.tab.value);
  return (
    <div class={css.page}>
      <Header state={state} collapsed={embedOption('uiTimelineCollapseTitle')} hideFacts={embedOption('uiTimelineHideSummary')} />
      <Toolbar state={state} tab={tab} />
      <div class={css.columns}>
        <TabPanel name="trace" selected={tab?.id ?? ''} class={css.content}>
          {tab ? <tab.View key={tab.id} state={state} /> : <Timeline state={state} />}
        </TabPanel>
        <Details state={state} />
      </div>
    </div>
  );
}

/** The details of the selected span. What is beside them does not depend on the selection, and is not rendered again. */
function Details({ state }: { state: TraceState }) {
  const span = state.selected.value;
  return span >= 0 ? <DetailPanel state={state} span={span} /> : null;
}

/** Milliseconds from the first rows to the requests for what is shown beside them, so that a span that is opened immediately does not wait for them. */
const settlesAfter = 300;

/** Asks what is usual for the spans, after the first rows. */
function useUsual(state: TraceState): void {
  useEffect(() => {
    if (state.source.kind === 'file') return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      state.settled.value = true;
      void import('./usual').then((m) => { if (!abort.signal.aborted) m.followUsual(state, abort.signal); }, () => undefined);
    }, settlesAfter);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [state]);
}

function Timeline({ state }: { state: TraceState }) {
  useTimelineKeys(state);
  return (
    <>
      {!embedOption('uiTimelineHideMinimap') && <div class={css.minimap}><Minimap state={state} /></div>}
      <Waterfall state={state} />
      {state.chosen.value.length > 0 && state.source.kind === 'server' && <Pattern state={state} />}
    </>
  );
}
