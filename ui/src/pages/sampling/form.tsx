import { useEffect, useState } from 'preact/hooks';
import type { Names } from '../../api/types';
import { Button } from '../../shell/controls';
import { t } from '../../shell/text';
import { parseTraceRef } from '../../shell/trace-id';
import { navigate, view, type Ask } from '../../shell/url';
import { useRequest } from '../../shell/use-request';
import css from './form.module.css';

const maxServices = 500;
const cacheAge = 60_000;

/** The form that asks about a missing trace: everything in it is in the URL after it was sent. */
export function AskForm() {
  const current = view.value.ask;
  const [draft, setDraft] = useState<Ask>(current);
  const [problem, setProblem] = useState('');
  useEffect(() => setDraft(current), [current.service, current.operation, current.trace]);
  const names = useRequest<Names>('values', { key: 'service', prefix: '', limit: maxServices }, { maxAge: cacheAge });
  const set = (change: Partial<Ask>): void => setDraft({ ...draft, ...change });
  const send = (e: Event): void => {
    e.preventDefault();
    const typed = draft.trace.trim();
    const ref = typed ? parseTraceRef(typed) : null;
    if (typed && !ref) return setProblem(t('This is not a trace ID: enter its hex digits, or paste a traceparent or a link.'));
    if (!ref && !draft.service.trim()) return setProblem(t('Enter a trace ID, a service, or both.'));
    setProblem('');
    navigate({ ask: { service: draft.service.trim(), operation: draft.operation.trim(), trace: ref ? ref.trace.padStart(32, '0') : '' } });
  };
  return (
    <form class={css.form} onSubmit={send} aria-label={t('Missing trace')}>
      <label class={css.id}><span>{t('Trace ID')}</span><input class={css.mono} value={draft.trace} placeholder={t('hex digits, traceparent or link')} autocomplete="off" spellcheck={false} aria-invalid={problem ? 'true' : undefined} aria-describedby={problem ? 'ask-problem' : undefined} onInput={(e) => set({ trace: e.currentTarget.value })} /></label>
      <label><span>{t('Service that starts the trace')}</span><input list="ask-services" value={draft.service} autocomplete="off" spellcheck={false} onInput={(e) => set({ service: e.currentTarget.value })} /></label>
      <label><span>{t('Root operation')}</span><input value={draft.operation} placeholder={t('any')} autocomplete="off" spellcheck={false} onInput={(e) => set({ operation: e.currentTarget.value })} /></label>
      <datalist id="ask-services">{(names.data?.names ?? []).map((n) => <option key={n} value={n} />)}</datalist>
      <Button kind="primary" type="submit" class={css.send}>{t('Why is it missing?')}</Button>
      {problem && <p id="ask-problem" role="alert" class={css.problem}>{problem}</p>}
    </form>
  );
}
