import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, apiURL, authorization, get, tenant, unreadable, type Params } from '../api/client';
import type { ApiMessage } from '../api/types';
import { nanos } from './format';
import { resolveRange } from './range';
import type { Range } from './url';

/** State of a request. Old data stays until new data is there. */
export interface RequestState<T> {
  data: T | undefined;
  /** Why the data is incomplete. */
  messages: ApiMessage[];
  error: ApiError | null;
  loading: boolean;
  /** Time of the answer in milliseconds since the epoch, 0 if there was none. */
  at: number;
  retry: () => void;
}

/** Options of useRequest. */
export interface UseRequestOptions {
  /** Interval of refreshes in milliseconds while the page is visible. 0 disables them. */
  every?: number;
  /** Maximum age of a cached answer in milliseconds. */
  maxAge?: number;
}

/** Milliseconds after which a failed request is repeated, where the page refreshes itself. */
const repeatAfter = 3000;

/** Any fixed time: parameters at this time tell whether two requests ask for the same. */
const referenceTime = Date.UTC(2020, 0, 1);

/** `start` and `end` of a range at the time `now`. */
export function rangeParams(range: Range, now: number): Params {
  const { from, to } = resolveRange(range, now);
  return { start: nanos(from), end: nanos(to) };
}

/**
 * Asks `/api/ui/v1/NAME`, or the path of another API, again when the parameters, the tenant or the credentials change, and aborts what is not needed any more.
 * `params` gets the time, so that relative ranges move with refreshes. A `name` of null sends nothing.
 */
export function useRequest<T>(name: string | null, params: Params | ((now: number) => Params) = {}, options: UseRequestOptions = {}): RequestState<T> {
  const [state, setState] = useState<Omit<RequestState<T>, 'retry'>>({ data: undefined, messages: [], error: null, loading: name !== null, at: 0 });
  const [attempt, setAttempt] = useState(0);
  const at = (now: number): Params => (typeof params === 'function' ? params(now) : params);
  const key = name === null ? '' : [apiURL(name, at(referenceTime)), authorization.value, tenant.value].join('\n');
  const previous = useRef(key);
  useEffect(() => {
    if (name === null) return;
    const abort = new AbortController();
    const first = previous.current !== key || attempt === 0;
    previous.current = key;
    setState((s) => ({ ...s, loading: true }));
    get<T>(name, at(Date.now()), { signal: abort.signal, maxAge: first ? options.maxAge : 0 }).then(
      (answer) => { if (!abort.signal.aborted) setState({ data: answer.data, messages: answer.errors ?? [], error: null, loading: false, at: Date.now() }); },
      (e: unknown) => { if (!abort.signal.aborted) setState((s) => ({ ...s, error: asApiError(e), loading: false })); },
    );
    return () => abort.abort();
  }, [key, attempt]);
  const wait = refreshAfter(options.every ?? 0, state.error);
  useEffect(() => {
    if (!wait || name === null || state.loading) return; // a slow answer is awaited
    const timer = setInterval(() => { if (!document.hidden) setAttempt((n) => n + 1); }, wait);
    return () => clearInterval(timer);
  }, [key, wait, state.loading, state.at]);
  const late = name !== null && previous.current !== key; // the data is of other parameters
  return { ...state, loading: state.loading || late, retry: () => setAttempt((n) => n + 1) };
}

/** Milliseconds until the next refresh: sooner after an error that passes, never after others. */
function refreshAfter(every: number, error: ApiError | null): number {
  if (!every || !error) return every;
  return error.passing ? Math.min(every, Math.max(repeatAfter, error.retryAfter * 1000)) : 0;
}

function asApiError(e: unknown): ApiError {
  return e instanceof ApiError ? e : new ApiError(0, unreadable);
}
