import { useEffect, useState } from 'preact/hooks';
import { ApiError, get } from '../../api/client';
import type { CriticalPath, CriticalPaths, TraceSummary } from '../../api/types';

/** Traces of one request, of which the server takes at most 100. */
const together = 50;

/** Milliseconds until a request that failed is repeated. */
const again = 5000;

/** Critical paths by trace; null for those that cannot be read. */
export type Paths = ReadonlyMap<string, CriticalPath | null>;

/** The critical paths of listed traces: asked for when the list does not change any more, so that it never waits for them. What fails for now is asked for again. */
export function usePaths(traces: TraceSummary[], ready: boolean): Paths {
  const [known, setKnown] = useState<Paths>(new Map());
  const missing = traces.filter((trace) => !known.has(trace.traceID)).slice(0, together).map((trace) => trace.traceID);
  const [attempt, setAttempt] = useState(0);
  const ids = ready ? missing.join(',') : '';
  useEffect(() => {
    if (!ids) return;
    const own = new AbortController();
    let timer = 0;
    const add = (paths: CriticalPath[]): void => {
      if (own.signal.aborted) return;
      const found = new Map(paths.map((p) => [p.traceID, p]));
      setKnown((before) => new Map([...before, ...ids.split(',').map((id) => [id, found.get(id) ?? null] as const)]));
    };
    get<CriticalPaths>('critical', { ids }, { signal: own.signal }).then((answer) => add(answer.data.paths), (e: unknown) => {
      if (!(e instanceof ApiError && e.passing)) add([]);
      else if (!own.signal.aborted) timer = window.setTimeout(() => setAttempt(attempt + 1), Math.max(again, e.retryAfter * 1000));
    });
    return () => { own.abort(); clearTimeout(timer); };
  }, [ids, attempt]);
  return known;
}
