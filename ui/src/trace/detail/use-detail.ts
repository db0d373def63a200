import { useLayoutEffect, useState } from 'preact/hooks';
import type { SpanDetail } from '../../api/types';
import { t } from '../../shell/text';
import type { TraceState } from '../state';

/** A span in full, or why it is not there yet. */
export interface DetailState {
  detail: SpanDetail | null;
  error: Error | null;
  retry: () => void;
}

/** Spans kept, so that going back to one is immediate. */
const maxKept = 50;

/** The span with an id in full. `version` changes when the trace does: its links can be others then. */
export function useDetail(state: TraceState, id: string, version: object): DetailState {
  const [kept] = useState(() => new Map<string, SpanDetail>());
  const [answer, setAnswer] = useState<{ id: string; detail: SpanDetail | null; error: Error | null }>({ id: '', detail: null, error: null });
  const [attempt, setAttempt] = useState(0);
  useLayoutEffect(() => { // the request does not wait for the next frame
    const abort = new AbortController();
    state.details(id, abort.signal).then((spans) => {
      if (abort.signal.aborted) return;
      const detail = spans.find((s) => s.spanID === id) ?? spans[0] ?? null;
      if (detail) kept.set(id, detail);
      if (kept.size > maxKept) kept.delete(kept.keys().next().value!);
      setAnswer({ id, detail, error: detail ? null : new Error(t('The span is no longer stored.')) });
    }, (error: unknown) => {
      if (!abort.signal.aborted) setAnswer({ id, detail: null, error: error instanceof Error ? error : new Error(String(error)) });
    });
    return () => abort.abort();
  }, [state, id, attempt, version]);
  const now = answer.id === id ? answer : null;
  return { detail: now?.detail ?? kept.get(id) ?? null, error: now?.error ?? null, retry: () => setAttempt((n) => n + 1) };
}
