import { useEffect, useRef } from 'preact/hooks';
import { announce } from '../shell/live-region';
import { count } from '../shell/format';
import { t } from '../shell/text';
import type { TraceState } from './state';

/** Milliseconds between requests for a growing trace. */
const interval = 3000;

/** Follows a trace that still receives spans, and the switch of the skew correction. Selection and scroll position stay. */
export function useRefresh(state: TraceState): void {
  const growing = state.model.value.facts.growing;
  const skew = state.skew.value;
  const first = useRef(true);
  useEffect(() => {
    if (first.current) {
      first.current = false;
      if (state.model.value.skew === skew) return;
    }
    let current = true;
    void state.source.withSkew(skew).then((model) => { if (current) state.replace(model); });
    return () => { current = false; };
  }, [state, skew]);
  useEffect(() => {
    if (!growing || state.source.kind === 'file') return;
    const abort = new AbortController();
    let reloading = false;
    const timer = setInterval(() => { if (!document.hidden && !reloading) void reload(); }, interval);
    async function reload(): Promise<void> {
      // A failed request is repeated at the next turn; what is shown stays.
      reloading = true;
      const model = await state.source.load(state.skew.peek(), abort.signal).catch(() => null);
      reloading = false;
      if (!model || abort.signal.aborted) return;
      const more = model.spans - state.model.peek().spans;
      state.replace(model);
      if (more > 0) announce(t('{more} more spans', { more: count(more) }));
    }
    return () => {
      clearInterval(timer);
      abort.abort();
    };
  }, [state, growing, skew]);
}
