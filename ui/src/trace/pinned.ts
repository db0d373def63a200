// Values of pinned attributes, fetched for the rows that are visible.

import { signal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { SpanDetail } from '../api/types';
import { spanID } from './model/span';
import type { TraceState } from './state';

/** Spans asked for at once, and milliseconds to wait for further rows while the user scrolls. */
const batch = 100;
const patience = 120;

/** Text of the pinned attributes of a span: `resend=0`. Spans that are not known yet are fetched while they are visible. */
export function usePinned(state: TraceState): (span: number) => string {
  const known = useRef(new Map<string, string[]>());
  const version = useMemo(() => signal(0), []);
  const { pins } = state;
  const model = state.model.value;
  const keys = pins.value;
  const [first, last] = keys.length > 0 ? state.visible.value : [0, 0];
  useEffect(() => { known.current.clear(); }, [keys, model]);
  useEffect(() => {
    if (keys.length === 0) return;
    const abort = new AbortController();
    const timer = setTimeout(() => void fetchValues(), patience);
    async function fetchValues(): Promise<void> {
      const ids = [...state.rows.peek().row.subarray(Math.max(0, first - 10), last + 10)].filter((s) => s >= 0).map((s) => spanID(model, s)).filter((id) => !known.current.has(id));
      for (let i = 0; i < ids.length && !abort.signal.aborted; i += batch) {
        const spans = await state.source.details(ids.slice(i, i + batch), abort.signal).catch(() => []);
        for (const span of spans) known.current.set(span.spanID, valuesOf(span, keys));
        if (spans.length > 0) version.value++;
      }
    }
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [keys, model, first, last]);
  const seen = version.value;
  return useMemo(() => (span: number) => (keys.length === 0 ? '' : (known.current.get(spanID(model, span)) ?? []).join('  ')), [keys, model, seen]);
}

/** `key=value` of the pinned keys that a span has, with the last part of the key. */
function valuesOf(span: SpanDetail, keys: string[]): string[] {
  return keys.flatMap((key) => {
    const a = span.attributes.find((x) => x.key === key) ?? span.resource.find((x) => x.key === key);
    return a ? [`${key.slice(key.lastIndexOf('.') + 1)}=${a.value.slice(0, 80)}`] : [];
  });
}
