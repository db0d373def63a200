import { lazy, type LazyComponent } from '../../shell/lazy';
import { t } from '../../shell/text';
import type { TraceState } from '../state';

/** What a tab of the trace page gets. The selected span and the cursor are part of the state, and stay when the tab changes. */
export interface TabProps {
  state: TraceState;
}

/** A tab after the timeline: loaded when it is first shown. */
export interface TraceTab {
  /** Value of the parameter `tab`. */
  id: string;
  label: () => string;
  /** Key that shows the tab, in addition to its number. */
  key?: string;
  /** Whether durations and the critical path are drawn, so that their tools are of use. */
  timed?: boolean;
  View: LazyComponent<TabProps>;
}

/** The tabs after the timeline, in their order. */
export const traceTabs: TraceTab[] = [
  { id: 'flame', label: () => t('Flame graph'), key: 'f', timed: true, View: lazy(() => import('./flame')) },
  { id: 'table', label: () => t('Table'), View: lazy(() => import('./lists').then((m) => ({ default: m.Table }))) },
  { id: 'statistics', label: () => t('Statistics'), View: lazy(() => import('./lists').then((m) => ({ default: m.Statistics }))) },
  { id: 'events', label: () => t('Events'), View: lazy(() => import('./lists').then((m) => ({ default: m.Events }))) },
  { id: 'graph', label: () => t('Graph'), View: lazy(() => import('./graph')) },
];

/** The tab of the parameter `tab`, or null for the timeline. */
export function chosenTab(id: string): TraceTab | null {
  return traceTabs.find((tab) => tab.id === id) ?? null;
}
