import { useEffect, useMemo } from 'preact/hooks';
import { classes } from '../shell/controls';
import { view } from '../shell/url';
import { DetailPanel } from './detail/panel';
import { Header } from './header';
import { useTraceKeys } from './keys';
import type { TraceModel, TraceSource } from './model/types';
import { TraceState } from './state';
import { Minimap } from './timeline/minimap';
import { Waterfall } from './timeline/waterfall';
import { Toolbar } from './toolbar';
import { useRefresh } from './refresh';
import css from './trace-view.module.css';

/** Whether an option of the original's embed mode is set. */
function embedOption(name: string): boolean {
  return view.value.embed && view.value.embedOptions[name] === '1';
}

/** A loaded trace: head, tools, minimap, waterfall and the details of the selected span. */
export function TraceView({ source, model }: { source: TraceSource; model: TraceModel }) {
  const state = useMemo(() => new TraceState(source, model), [source]);
  useEffect(() => () => state.close(), [state]);
  useRefresh(state);
  useTraceKeys(state);
  const span = state.selected.value;
  return (
    <div class={css.page}>
      <Header state={state} collapsed={embedOption('uiTimelineCollapseTitle')} hideFacts={embedOption('uiTimelineHideSummary')} />
      <Toolbar state={state} />
      <div class={css.columns}>
        <div class={classes(css.timeline, span >= 0 && css.detailed)}>
          {!embedOption('uiTimelineHideMinimap') && <Minimap state={state} />}
          <Waterfall state={state} />
        </div>
        {span >= 0 && <DetailPanel state={state} span={span} />}
      </div>
    </div>
  );
}
