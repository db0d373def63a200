// Keyboard shortcuts of the trace page.

import { useKeys } from '../shell/keys';
import { navigate } from '../shell/url';
import { activeSpan, back, foldLevel, goToNext, goToParent, moveCursor, openActive, panBy, setRoot, setZoom, zoomAround, zoomTo } from './moves';
import { findBox } from './toolbar';
import type { TraceState } from './state';

/** Registers the shortcuts while the page is shown. Letters of the original keep their meaning where they do not clash. */
export function useTraceKeys(state: TraceState): void {
  const withSpan = (run: (span: number) => void) => (): void | false => {
    const span = activeSpan(state);
    if (span === null) return false;
    run(span);
  };
  const match = (step: 1 | -1) => (): void | false => (state.found.value ? goToNext(state, state.found.value.spans, step) : false);
  const inPage = (run: () => void) => (): void | false => (onControl() ? false : run());
  useKeys('Trace', [
    { keys: ['j', 'ArrowDown'], label: 'Next row', run: inPage(() => moveCursor(state, 1)) },
    { keys: ['k', 'ArrowUp'], label: 'Previous row', run: inPage(() => moveCursor(state, -1)) },
    { keys: ['ArrowRight', 'ArrowLeft'], label: 'Unfold, fold; go to child, parent' },
    { keys: ['Enter'], label: 'Open details', run: inPage(() => openActive(state)) },
    { keys: ['Escape'], label: 'Close, go back', run: () => back(state) },
    { keys: ['/', 'Mod b'], label: 'Find in trace', run: focusFind },
    { keys: ['n'], label: 'Next match', run: match(1) },
    { keys: ['p'], label: 'Previous match', run: match(-1) },
    { keys: ['e'], label: 'Next error', run: () => goToNext(state, state.model.value.facts.errors) },
    { keys: ['u'], label: 'Go to the parent', run: () => goToParent(state) },
    { keys: ['r'], label: 'Show the span as root', run: withSpan((span) => setRoot(state, span)) },
    { keys: ['c'], label: 'Critical path', run: () => navigate({ path: !state.showPath.value }, { replace: true }) },
    { keys: ['['], label: 'Fold one level more', run: () => foldLevel(state, -1) },
    { keys: [']'], label: 'Unfold one level more', run: () => foldLevel(state, 1) },
    { keys: ['z'], label: 'Zoom to the span', run: withSpan((span) => zoomTo(state, span)) },
    { keys: ['+', '='], label: 'Zoom in', run: () => zoomAround(state, 0.5) },
    { keys: ['-'], label: 'Zoom out', run: () => zoomAround(state, 2) },
    { keys: ['0'], label: 'Show the whole trace', run: () => setZoom(state, [0, 1]) },
    { keys: ['a'], label: 'Move left', run: () => panBy(state, -0.2) },
    { keys: ['d'], label: 'Move right', run: () => panBy(state, 0.2) },
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
