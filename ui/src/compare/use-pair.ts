// Loads the two traces of the page and matches them.

import { useEffect, useState } from 'preact/hooks';
import type { Typical } from '../api/baseline';
import { authorization, get, tenant } from '../api/client';
import { showServices } from '../shell/service-color';
import { view } from '../shell/url';
import { serverSource } from '../trace/client';
import type { TraceModel, TraceSource } from '../trace/model/types';
import type { Comparison } from './types';

/** The name of the typical trace in URLs. */
export const baseline = 'baseline';

/** Two loaded traces and what differs. */
export interface Pair {
  a: TraceModel;
  b: TraceModel;
  sources: { a: TraceSource; b: TraceSource };
  comparison: Comparison;
  /** How B was chosen, if the server chose it. */
  typical: Typical | null;
}

/** Why there is nothing to compare. */
export type Obstacle =
  | { kind: 'missing'; side: 'a' | 'b'; id: string; error: Error }
  | { kind: 'same' }
  | { kind: 'alone'; typical: Typical; a: TraceModel }
  | { kind: 'failed'; what: 'typical' | 'matching'; error: Error };

/** State of loading two traces: nothing yet, a pair, or an obstacle. */
export interface PairState {
  pair: Pair | null;
  obstacle: Obstacle | null;
  retry: () => void;
}

/** Where traces come from; null if there is no such trace. */
export type SourceOf = (id: string) => TraceSource | null;

/** Loads two traces, of which B may be `baseline`. */
export function usePair(a: string, b: string, sourceOf: SourceOf = serverSource): PairState {
  const [state, setState] = useState<Omit<PairState, 'retry'>>({ pair: null, obstacle: null });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    const sources: TraceSource[] = [];
    const open = (id: string): TraceSource | null => {
      const source = sourceOf(id);
      if (source) sources.push(source);
      return source;
    };
    let hide = (): void => undefined;
    setState({ pair: null, obstacle: null });
    load(a, b, open, abort.signal).then((found) => {
      if (abort.signal.aborted) return;
      if ('comparison' in found) hide = showServices([...found.a.services, ...found.b.services]);
      setState('comparison' in found ? { pair: found, obstacle: null } : { pair: null, obstacle: found });
    }, () => undefined);
    return () => {
      abort.abort();
      hide();
      for (const s of sources) s.close();
    };
  }, [a, b, attempt, authorization.value, tenant.value]);
  return { ...state, retry: () => setAttempt((n) => n + 1) };
}

async function load(idA: string, idB: string, open: SourceOf, signal: AbortSignal): Promise<Pair | Obstacle> {
  if (idA === idB) return { kind: 'same' };
  const a = await loadTrace('a', idA, open, signal);
  if ('kind' in a) return a;
  let typical: Typical | null = null;
  if (idB === baseline) {
    try {
      typical = (await get<Typical>(`typical/${encodeURIComponent(a.model.traceID)}`, {}, { signal, maxAge: 60_000 })).data;
    } catch (error) {
      return { kind: 'failed', what: 'typical', error: error as Error };
    }
    if (!typical.traceID) return { kind: 'alone', typical, a: a.model };
  }
  const b = await loadTrace('b', typical?.traceID ?? idB, open, signal);
  if ('kind' in b) return b;
  if (a.model.traceID === b.model.traceID) return { kind: 'same' };
  try {
    const comparison = await a.source.compare(a.model, b.model);
    return { a: a.model, b: b.model, sources: { a: a.source, b: b.source }, comparison, typical };
  } catch (error) {
    return { kind: 'failed', what: 'matching', error: error as Error };
  }
}

async function loadTrace(side: 'a' | 'b', id: string, open: SourceOf, signal: AbortSignal): Promise<{ source: TraceSource; model: TraceModel } | Obstacle> {
  const missing = (error: Error): Obstacle => ({ kind: 'missing', side, id, error });
  const source = open(id);
  if (!source) return missing(new Error('trace not found'));
  try {
    const model = await source.load(view.peek().skew, signal);
    return model ? { source, model } : missing(new Error('trace not found'));
  } catch (error) {
    return missing(error as Error);
  }
}
