import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { ApiError, authorization, tenant } from '../api/client';
import { lazy } from '../shell/lazy';
import { Failure, Progress, Skeleton } from '../shell/states';
import { rememberTrace } from '../shell/recent';
import { t } from '../shell/text';
import { useTitle } from '../shell/title';
import { route, view } from '../shell/url';
import { serverSource } from '../trace/client';
import { sentenceText } from '../trace/model/sentence';
import { operation, serviceName } from '../trace/model/span';
import type { TraceModel, TraceSource } from '../trace/model/types';
import TraceView from '../trace/trace-view';
import css from './trace.module.css';

/** Spans can arrive late: a missing trace is asked for again at this interval, this often. */
const retryInterval = 3000;
const retries = 10;

const TraceMissing = lazy(() => import('./trace-missing'));

interface Loaded {
  source: TraceSource;
  model: TraceModel;
}

/** The page `trace`: loads the trace of the URL. */
export default function TracePage() {
  const shown = route.value;
  const id = shown.page === 'trace' ? shown.id : '';
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [attempt, setAttempt] = useState(0);
  const missing = error instanceof ApiError && error.status === 404;
  const malformed = error instanceof ApiError && error.status === 400; // the id
  useLayoutEffect(() => { // before the next frame
    const abort = new AbortController();
    const source = serverSource(id);
    source.load(view.peek().skew, abort.signal).then((model) => {
      if (abort.signal.aborted || !model) return;
      setError(null);
      setLoaded({ source, model });
    }, (e: unknown) => {
      if (!abort.signal.aborted) setError(e instanceof Error ? e : new Error(String(e)));
    });
    return () => {
      abort.abort();
      source.close();
      setLoaded(null);
    };
  }, [id, attempt, authorization.value, tenant.value]);
  useEffect(() => {
    if (!missing || attempt >= retries) return;
    const timer = setTimeout(() => setAttempt((n) => n + 1), retryInterval);
    return () => clearTimeout(timer);
  }, [missing, attempt]);
  useEffect(() => {
    if (!loaded || loaded.model.roots.length === 0) return;
    const { model } = loaded;
    rememberTrace(model.traceID, `${serviceName(model, model.service[model.roots[0]])} ${operation(model, model.roots[0])}`);
  }, [loaded]);
  useTitle(loaded ? sentenceText(loaded.model) : t('Trace'));
  if (loaded) return <TraceView key={loaded.model.traceID} {...loaded} />;
  if (missing || malformed) return <TraceMissing id={id} malformed={malformed} searching={missing && attempt < retries} retry={() => setAttempt(1)} />;
  if (error) return <div class={css.message}><h1 class="visually-hidden">{t('Trace')}</h1><Failure what={t('The trace cannot be loaded')} error={error} retry={() => setAttempt((n) => n + 1)} /></div>;
  return <div class={css.loading}><Progress active label={t('Loading the trace')} /><div class={css.message}><Skeleton rows={12} /></div></div>;
}
