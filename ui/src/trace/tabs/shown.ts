// What the tabs beside the timeline show and derive.

import { useEffect, useMemo, useState } from 'preact/hooks';
import { none } from '../../shell/format';
import { t } from '../../shell/text';
import { isAttribute, ownValues } from '../model/grouping';
import type { AttributeValues, Extras } from '../model/types';
import type { TraceState } from '../state';

/** Spans that the filters of the page leave, ascending: those below the root, of the minimum duration, and of the chosen part or matches. */
export function useShown(state: TraceState): Int32Array {
  const [model, only, min, root] = [state.model.value, state.onlySpans.value, state.min.value, state.root.value];
  return useMemo(() => {
    const first = Math.max(0, root);
    const last = root < 0 ? model.spans : root + model.subtree[root];
    const all = only ?? Int32Array.from({ length: last - first }, (_, i) => first + i);
    return all.filter((s) => s >= first && s < last && model.end[s] - model.start[s] >= min);
  }, [model, only, min, root]);
}

/** Own times and lanes of all spans; null until they are calculated. */
export function useExtras(state: TraceState): Extras | null {
  const model = state.model.value;
  const [known, setKnown] = useState<{ model: object; extras: Extras } | null>(null);
  useEffect(() => {
    let current = true;
    void state.source.extras().then((extras) => {
      if (current && extras.self.length === model.spans) setKnown({ model, extras });
    }, () => undefined);
    return () => { current = false; };
  }, [state, model]);
  return known?.model === model ? known.extras : null;
}

/** Values of a key of all spans, or why they are not there. */
export interface KeyValues extends AttributeValues {
  state: 'loaded' | 'loading' | 'failed';
  message: string;
}

/** Values of keys. Those of attributes are loaded; until then, each span has the value "…". */
export function useKeyValues(state: TraceState, keys: string[]): { columns: KeyValues[]; retry: () => void } {
  const model = state.model.value;
  const [answers, setAnswers] = useState<{ model: object; byKey: ReadonlyMap<string, AttributeValues | Error> }>({ model, byKey: new Map() });
  const [attempt, setAttempt] = useState(0);
  const byKey = answers.model === model ? answers.byKey : new Map<string, AttributeValues | Error>();
  const joined = keys.join('\n');
  useEffect(() => {
    const abort = new AbortController();
    const keep = (key: string, answer: AttributeValues | Error): void => {
      if (abort.signal.aborted) return;
      setAnswers((a) => ({ model, byKey: new Map(a.model === model ? a.byKey : []).set(key, answer) }));
    };
    for (const key of keys.filter(isAttribute)) {
      if (byKey.has(key) && !(byKey.get(key) instanceof Error)) continue;
      state.source.values(key, abort.signal).then((values) => {
        if (values.value.length === model.spans) keep(key, values);
      }, (e: unknown) => keep(key, e instanceof Error ? e : new Error(String(e))));
    }
    return () => abort.abort();
  }, [state, model, joined, attempt]);
  const columns = useMemo(() => keys.map((key): KeyValues => {
    if (!isAttribute(key)) return { ...ownValues(model, key), state: 'loaded', message: '' };
    const answer = byKey.get(key);
    if (answer && !(answer instanceof Error)) return { ...answer, state: 'loaded', message: '' };
    const message = answer ? t('{key} is not loaded: {reason}', { key, reason: answer.message }) : t('{key} is being loaded', { key });
    return { values: ['…'], value: new Int32Array(model.spans), state: answer ? 'failed' : 'loading', message };
  }), [model, joined, answers]);
  return { columns, retry: () => setAttempt((n) => n + 1) };
}

/** Text of a value of a key. */
export function valueText(column: KeyValues, index: number): string {
  return index < 0 ? none : column.values[index] || t('empty');
}

/** Keys of attributes of the trace, as far as they are known. They are not waited for. */
export function useTraceKeys(state: TraceState): string[] {
  const [keys, setKeys] = useState<string[]>([]);
  useEffect(() => {
    const abort = new AbortController();
    state.source.keys(abort.signal).then((k) => setKeys(k.key), () => undefined);
    return () => abort.abort();
  }, [state]);
  return keys;
}

/** Opens the details of a span. */
export function openSpan(state: TraceState, span: number): void {
  if (state.selected.value !== span) state.open(span);
}
