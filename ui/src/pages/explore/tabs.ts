import { capable } from '../../shell/config';
import { lazy, type LazyComponent } from '../../shell/lazy';
import { t } from '../../shell/text';
import type { Run } from './run';

/** What a tab of the results gets. */
export interface TabProps {
  run: Run;
  /** Searches with another text. */
  onRun: (text: string) => void;
}

/** A tab of the results, after that of the traces: loaded when it is first shown. */
export interface ExploreTab {
  /** Value of the parameter `tab`. */
  id: string;
  label: () => string;
  /** Whether the store of the server can answer it. Without it: always. */
  offered?: () => boolean;
  /** It gets the whole run and applies the selection itself. */
  selects?: boolean;
  View: LazyComponent<TabProps>;
}

/** The tabs after Traces, in their order. */
export const exploreTabs: ExploreTab[] = [
  { id: 'spans', label: () => t('Spans'), offered: () => capable('aggregates'), View: lazy(() => import('./span-table')) },
  { id: 'groups', label: () => t('Groups'), offered: () => capable('aggregates'), View: lazy(() => import('./groups/groups')) },
  { id: 'times', label: () => t('Two times'), offered: () => capable('aggregates'), View: lazy(() => import('./times/times')) },
  { id: 'explain', label: () => t('Explain'), selects: true, offered: () => capable('aggregates'), View: lazy(() => import('./explain/explain')) },
  { id: 'tree', label: () => t('Tree'), selects: true, offered: () => capable('aggregates'), View: lazy(() => import('./tree')) },
  { id: 'errors', label: () => t('Errors'), View: lazy(() => import('./errors-tab')) },
];

/** The tab of the parameter `tab` if it can be shown; otherwise null, for the traces. */
export function chosenTab(id: string): ExploreTab | null {
  return offeredTabs().find((tab) => tab.id === id) ?? null;
}

/** The tabs that the server can fill. */
export function offeredTabs(): ExploreTab[] {
  return exploreTabs.filter((tab) => tab.offered?.() ?? true);
}
