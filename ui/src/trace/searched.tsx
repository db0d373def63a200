import { useEffect, useState } from 'preact/hooks';
import { Chip } from '../shell/controls';
import { count } from '../shell/format';
import { t, tn } from '../shell/text';
import { navigate } from '../shell/url';
import { goToNext } from './moves';
import type { TraceState } from './state';
import css from './toolbar.module.css';

/** The search that led to the trace: what it found is marked, nothing is dimmed. A click goes to the next span. */
export default function Searched({ state }: { state: TraceState }) {
  const q = state.search.value;
  const failed = useMarks(state, q);
  const spans = state.marked.value;
  const n = spans && tn(spans.length, '{n} span', '{n} spans', { n: count(spans.length) });
  return (
    <Chip
      label={t('search')} title={failed || t('Spans that match {q} are marked. Click or press n for the next one', { q })}
      onEdit={() => { if (spans) goToNext(state, spans); }} onRemove={() => navigate({ search: '' }, { replace: true })}
    >
      <span class={css.search}>{q}</span> {failed ? t('cannot be shown') : n}
    </Chip>
  );
}

/** Finds the spans when the search or the trace changes. Returns why that failed, or "". */
function useMarks(state: TraceState, q: string): string {
  const model = state.model.value;
  const [failed, setFailed] = useState('');
  useEffect(() => {
    setFailed('');
    const abort = new AbortController();
    state.source.find(q, (result) => {
      if (abort.signal.aborted) return;
      if (result.complete) state.marked.value = result.spans;
      setFailed(result.message);
    }, abort.signal).catch((e: unknown) => { if (!abort.signal.aborted) setFailed(e instanceof Error ? e.message : String(e)); });
    return () => {
      abort.abort();
      state.marked.value = null;
    };
  }, [q, model]);
  return failed;
}
