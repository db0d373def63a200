// Keyboard shortcuts of the trace page.

import { useKeys } from '../shell/keys';
import { t } from '../shell/text';
import { navigate, view } from '../shell/url';
import { activeSpan, back, choose, foldLevel, goToNext, goToParent, moveCursor, openActive, panBy, setRoot, setZoom, toggleBreaks, zoomAround, zoomTo } from './moves';
import { findBox } from './toolbar';
import type { TraceState } from './state';
import { traceTabs } from './tabs/tabs';

type Action = () => void | false;

const inPage = (run: () => void): Action => () => (onControl() ? false : run());

function onSpan(state: TraceState, run: (span: number) => void): Action {
  return () => {
    const span = activeSpan(state);
    return span === null ? false : run(span);
  };
}

/** Shows a tab; if it is shown, the timeline. */
function show(id: string): void {
  navigate({ tab: view.value.tab === id ? '' : id }, { replace: true });
}

/** Registers the shortcuts of all tabs. Letters of the original keep their meaning where they do not clash. */
export function useTraceKeys(state: TraceState): void {
  const match = (step: 1 | -1): Action => () => {
    const spans = state.found.value?.spans ?? state.marked.value;
    return spans ? goToNext(state, spans, step) : false;
  };
  const letters = traceTabs.filter((tab) => tab.key).map((tab) => ({ keys: [tab.key!], label: tab.label(), run: () => show(tab.id) }));
  const number = (e: KeyboardEvent): void | false => {
    const id = ['', ...traceTabs.map((tab) => tab.id)][Number(e.key) - 1];
    return id === undefined ? false : navigate({ tab: id }, { replace: true });
  };
  useKeys(t('Trace'), [
    { keys: ['Enter'], label: t('Open details'), run: inPage(() => openActive(state)) },
    { keys: ['Escape'], label: t('Close, go back'), run: () => back(state) },
    { keys: ['/', 'Mod b'], label: t('Find in trace'), run: focusFind },
    { keys: ['n'], label: t('Next match'), run: match(1) },
    { keys: ['p'], label: t('Previous match'), run: match(-1) },
    { keys: ['e'], label: t('Next error'), run: () => goToNext(state, state.model.value.facts.errors) },
    { keys: ['u'], label: t('Go to the parent'), run: () => goToParent(state) },
    { keys: ['r'], label: t('Show the span as root'), run: onSpan(state, (span) => setRoot(state, span)) },
    { keys: ['c'], label: t('Critical path'), run: () => navigate({ path: !state.showPath.value }, { replace: true }) },
    { keys: ['i'], label: t('Skip idle time'), run: () => toggleBreaks(state) },
    { keys: ['z'], label: t('Zoom to the span'), run: onSpan(state, (span) => zoomTo(state, span)) },
    { keys: ['+', '='], label: t('Zoom in'), run: () => zoomAround(state, 0.5) },
    { keys: ['-'], label: t('Zoom out'), run: () => zoomAround(state, 2) },
    { keys: ['0'], label: t('Show the whole trace'), run: () => setZoom(state, [0, 1]) },
    { keys: ['a'], label: t('Move left'), run: () => panBy(state, -0.2) },
    { keys: ['d'], label: t('Move right'), run: () => panBy(state, 0.2) },
    ...letters,
    { keys: [...'123456'], label: t('Tabs, from the left'), run: number },
  ]);
}

/** Registers the shortcuts of the timeline. */
export function useTimelineKeys(state: TraceState): void {
  useKeys(t('Timeline'), [
    { keys: ['j', 'ArrowDown'], label: t('Next row'), run: inPage(() => moveCursor(state, 1)) },
    { keys: ['k', 'ArrowUp'], label: t('Previous row'), run: inPage(() => moveCursor(state, -1)) },
    { keys: ['ArrowRight', 'ArrowLeft'], label: t('Unfold, fold; go to child, parent') },
    { keys: [' ', 'm'], label: t('Select the row for a pattern'), run: inPage(() => choose(state, state.active.value)) },
    { keys: ['['], label: t('Fold one more level'), run: () => foldLevel(state, -1) },
    { keys: [']'], label: t('Unfold one more level'), run: () => foldLevel(state, 1) },
  ]);
}

/** Whether a control has the focus, whose own keys come first. */
function onControl(): boolean {
  return !!document.activeElement?.closest('button, a, [role="slider"], [role="tab"], [role="separator"], [role="menu"]');
}

function focusFind(): void {
  const box = document.getElementById(findBox) as HTMLInputElement | null;
  box?.focus();
  box?.select();
}
