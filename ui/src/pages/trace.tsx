import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { ApiError, authorization, get, tenant } from '../api/client';
import type { Ingest } from '../api/types';
import { Button } from '../shell/controls';
import { duration } from '../shell/format';
import { Empty, Failure, Progress, Skeleton } from '../shell/states';
import { rememberTrace } from '../shell/recent';
import { t, Text } from '../shell/text';
import { useTitle } from '../shell/title';
import { link, view } from '../shell/url';
import { serverSource } from '../trace/client';
import { sentenceText } from '../trace/model/sentence';
import { operation, serviceName } from '../trace/model/span';
import type { TraceModel, TraceSource } from '../trace/model/types';
import TraceView from '../trace/trace-view';
import css from './trace.module.css';

/** Spans can arrive late: a missing trace is asked for again at this interval, this often. */
const retryInterval = 3000;
const retries = 10;

interface Loaded {
  source: TraceSource;
  model: TraceModel;
}

/** The page `trace`: loads the trace of the URL. */
export default function TracePage() {
  const { route } = view.value;
  const id = route.page === 'trace' ? route.id : '';
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [attempt, setAttempt] = useState(0);
  const missing = error instanceof ApiError && error.status === 404;
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
  useTitle(loaded ? sentenceText(loaded.model) : 'Trace');
  if (loaded) return <TraceView key={loaded.model.traceID} {...loaded} />;
  if (missing) return <NotFound id={id} searching={attempt < retries} retry={() => setAttempt(1)} />;
  if (error) return <div class={css.message}><h1 class="visually-hidden">{t('Trace')}</h1><Failure what={t('The trace cannot be loaded')} error={error} retry={() => setAttempt((n) => n + 1)} /></div>;
  return <div class={css.loading}><Progress active label={t('Loading the trace')} /><div class={css.message}><Skeleton rows={12} /></div></div>;
}

/** Why a trace can be missing, and what the page does about it. */
function NotFound({ id, searching, retry }: { id: string; searching: boolean; retry: () => void }) {
  const [ingest, setIngest] = useState<Ingest | null>(null);
  useEffect(() => { get<Ingest>('ingest', {}, { maxAge: 60_000 }).then((a) => setIngest(a.data), () => undefined); }, []);
  const kept = ingest && ingest.retention > 0 ? t(' Spans are kept for {retention}.', { retention: duration(ingest.retention) }) : ' ' + t('It can be older than the retention.');
  return (
    <div class={css.message} role="status">
      <Empty title={<span role="heading" aria-level={1}><Text of="Trace {id} not found" id={<code>{id}</code>} /></span>}>
        <p class={css.why}>{t('{kept} It may not have been sampled, or its spans have not arrived yet. {searching}', { kept, searching: searching ? t('Looking for late spans.') : t('No spans arrived in the last 30 seconds.') })}</p>
        {!searching && <Button icon="refresh" onClick={retry}>{t('Look again')}</Button>}
        <a href={link({ page: 'sampling' }, { ask: { service: '', operation: '', trace: id } })}>{t('Why is it missing?')}</a>
        <a href={link({ page: 'explore' })}>{t('Search for traces')}</a>
      </Empty>
      <Progress active={searching} label={t('Looking for late spans')} />
    </div>
  );
}
