import type { ComponentChildren } from 'preact';
import { ApiError } from '../api/client';
import type { ApiMessage } from '../api/types';
import { Button, classes } from './controls';
import { Mark } from './icons';
import { t } from './text';
import type { RequestState } from './use-request';
import css from './states.module.css';

/** What is missing, and up to three ways out as children. */
export function Empty({ title, children }: { title: ComponentChildren; children?: ComponentChildren }) {
  return <div class={css.empty}><p class={css.emptyTitle}>{title}</p>{children && <div class={css.ways}>{children}</div>}</div>;
}

/** Why something failed, and when it can succeed. */
function reason(error: Error): string {
  if (!(error instanceof ApiError) || (error.status !== 429 && !error.retryAfter)) return error.message;
  const busy = error.status === 429 ? t('The server limits the number of concurrent requests.') : '';
  const wait = error.retryAfter ? t('Try again in {retryAfter} s.', { retryAfter: error.retryAfter }) : t('Try again soon.');
  return [error.message.replace(/[^.]$/, '$&.'), busy, wait].filter(Boolean).join(' ');
}

/** A failed region: what failed, why, and a retry. The rest of the page stays. What the store cannot do is not a failure. */
export function Failure({ what, error, retry }: { what: string; error: ApiError | Error; retry?: () => void }) {
  if (error instanceof ApiError && error.status === 501) return <Partial>{what}: {error.message}</Partial>;
  return (
    <div role="alert" class={css.failure}>
      <Mark kind="error" label="" />
      <span>{what}: {reason(error)}</span>
      {retry && <Button kind="quiet" onClick={retry}>{t('Retry')}</Button>}
    </div>
  );
}

/** Why an answer failed, beside earlier data, or gray rows until there is data. `class` is of an element around them. */
export function AnswerState({ what, answer, class: extra, rows, height }: { what: string; answer: Pick<RequestState<unknown>, 'data' | 'error' | 'loading' | 'retry'>; class?: string; rows?: number; height?: string }) {
  const { data, error, loading, retry } = answer;
  if (!error && (data || !loading)) return null;
  const state = error ? <Failure what={data ? t('{what} (showing earlier data)', { what }) : what} error={error} retry={retry} /> : <Skeleton rows={rows} height={height} />;
  return extra ? <div class={extra}>{state}</div> : state;
}

/** Says in one sentence that an answer is partial, sampled or still being read. */
export function Partial({ children }: { children: ComponentChildren }) {
  return <p class={css.partial}><Mark kind="partial" label="" /><span>{children}</span></p>;
}

/** The messages of an answer that is not complete; nothing if there are none. */
export function Messages({ messages }: { messages: ApiMessage[] }) {
  if (messages.length === 0) return null;
  return <Partial>{messages.map((m) => m.msg).join('; ')}</Partial>;
}

/** Gray rows in place of data that has not come within 300 ms. */
export function Skeleton({ rows = 3, height = 'var(--row-h-list)' }: { rows?: number; height?: string }) {
  return (
    <div class={css.skeleton} aria-hidden="true">
      {Array.from({ length: rows }, (_, i) => <div key={i} class={css.skeletonRow} style={{ height }}><span class={classes(css.bone, i % 2 === 1 && css.short)} /><span class={css.tail} /></div>)}
    </div>
  );
}

/** A line of 2 px while new data is on its way; old data stays. It takes no space. */
export function Progress({ active, label = t('Loading') }: { active: boolean; label?: string }) {
  return <div class={css.progress} role="progressbar" aria-label={label} hidden={!active} />;
}
