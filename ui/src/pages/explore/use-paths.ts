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
    const add = (paths: CriticalPath[], complete: boolean): void => {
      if (!own.signal.aborted) setKnown((before) => new Map([...before, ...pathsFound(ids.split(','), paths, complete)]));
    };
    get<CriticalPaths>('critical', { ids }, { signal: own.signal }).then((answer) => add(answer.data.paths, !answer.errors), (e: unknown) => {
      if (!(e instanceof ApiError && e.passing)) add([], true);
      else if (!own.signal.aborted) timer = window.setTimeout(() => setAttempt(attempt + 1), Math.max(again, e.retryAfter * 1000));
    });
    return () => { own.abort(); clearTimeout(timer); };
  }, [ids, attempt]);
  return known;
}

/** What an answer says about traces. One that is not complete leaves traces out: they are asked for again, unless it has none at all. */
export function pathsFound(ids: string[], paths: CriticalPath[], complete: boolean): [string, CriticalPath | null][] {
  const found = new Map(paths.map((p) => [p.traceID, p]));
  const asked = complete || paths.length === 0 ? ids : ids.filter((id) => found.has(id));
  return asked.map((id) => [id, found.get(id) ?? null]);
}
