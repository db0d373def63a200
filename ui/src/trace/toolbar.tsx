import { useEffect, useRef, useState } from 'preact/hooks';
import { Button, Check, Chip, Input, Tabs } from '../shell/controls';
import { Menu, type MenuItem } from '../shell/floating';
import { axisDuration, count, duration, percent } from '../shell/format';
import { lazy } from '../shell/lazy';
import { announce } from '../shell/live-region';
import { t, Text, tn } from '../shell/text';
import { navigate } from '../shell/url';
import { operation } from './model/span';
import type { TraceModel } from './model/types';
import { activeSpan, goToNext, toggleBreaks } from './moves';
import { position } from './spans';
import type { TraceState } from './state';
import { traceTabs, type TraceTab } from './tabs/tabs';
import css from './toolbar.module.css';

const Searched = lazy<{ state: TraceState }>(() => import('./searched'));

/** Id of the find box, for the key `/`. */
export const findBox = 'find-in-trace';

/** The tabs of the trace, and the tools of the chosen one: find, minimum duration, critical path, and what the rows are limited to. */
export function Toolbar({ state, tab }: { state: TraceState; tab: TraceTab | null }) {
  const events = state.model.value.eventTime.length;
  const tabs = [{ id: '', label: t('Timeline') }, ...traceTabs.map(({ id, label }) => ({ id, label: label(), count: id === 'events' && events > 0 ? count(events) : undefined }))];
  const timed = tab?.timed ?? tab === null;
  return (
    <div class={css.toolbar}>
      <div class={css.tabs}><Tabs label={t('Views of the trace')} name="trace" tabs={tabs} selected={tab?.id ?? ''} onSelect={(id) => navigate({ tab: id }, { replace: true })} /></div>
      <Limits state={state} timeline={tab === null} />
      <span class={css.grow} />
      <Find state={state} />
      <Menu label={t('Minimum duration')} align="end" items={durations(state)} trigger={(p) => <Button kind="quiet" opens {...p}>{state.min.value ? t('At least {min}', { min: axisDuration(state.min.value) }) : t('Any duration')}</Button>} />
      {timed && state.canBreak.value && <Button kind="quiet" aria-pressed={state.breaks.value} title={t('No span runs during {idle} of {total}. Shorten long idle times on the time axis (i)', { idle: duration(state.model.value.idle), total: duration(state.model.value.duration) })} onClick={() => toggleBreaks(state)}>{t('Skip idle')}{' '}<kbd>i</kbd></Button>}
      {timed && <Button kind="quiet" aria-pressed={state.showPath.value} title={t('Show time on the critical path solid (c)')} onClick={() => navigate({ path: !state.showPath.value }, { replace: true })}>{t('Critical path')}{' '}<kbd>c</kbd></Button>}
    </div>
  );
}

/** Chips for what limits the rows; each can be removed. */
function Limits({ state, timeline }: { state: TraceState; timeline: boolean }) {
  const model = state.model.value;
  const part = model.sentence[state.part.value];
  const root = state.root.value;
  const below = state.rows.value.foldedBelow;
  return (
    <>
      {root >= 0 && <Chip label={t('root')} onRemove={() => navigate({ root: '', zoom: null })}>{operation(model, root)}</Chip>}
      {state.search.value && <Searched state={state} />}
      {part && <Chip label={t('only')} onRemove={() => navigate({ part: '' }, { replace: true })}>{percent(part.share)} {part.text}</Chip>}
      {state.missingSpan.value && <Chip label={t('span')} onRemove={() => navigate({ span: '' }, { replace: true })}>{t('{missingSpan} is not in this trace', { missingSpan: state.missingSpan.value })}</Chip>}
      {timeline && below > 0 && state.min.value === 0 && state.fold.value < 0 && <span class={css.note} title={t('Large traces open with short subtrees folded. Unfold them with ] or their arrow.')}>{t('folded below {below}', { below: axisDuration(below) })}</span>}
    </>
  );
}

/** Round minimum durations within the trace, with the number of spans that each leaves. */
function durations(state: TraceState): MenuItem[] {
  const model = state.model.value;
  const all = model.duration;
  const choices = [1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 6e10].filter((d) => d < all && d > all / 1e5);
  const chosen = state.min.value;
  if (chosen && !choices.includes(chosen)) choices.push(chosen);
  return [
    { label: t('Any duration'), checked: chosen === 0, onSelect: () => navigate({ min: 0 }) },
    ...choices.sort((a, b) => a - b).map((d) => ({ label: t('At least {d}, {model}', { d: axisDuration(d), model: spansOf(longer(model, d)) }), checked: chosen === d, onSelect: () => navigate({ min: d }) })),
  ];
}

function longer(model: TraceModel, least: number): number {
  let n = 0;
  for (let i = 0; i < model.spans; i++) if (model.end[i] - model.start[i] >= least) n++;
  return n;
}

const spansOf = (n: number): string => tn(n, '{n} span', '{n} spans', { n: count(n) });

/** Finds spans by name, service and attributes. Enter goes to the next match, also if the text is still being searched. */
function Find({ state }: { state: TraceState }) {
  const input = useRef<HTMLInputElement>(null);
  const [attempt, setAttempt] = useState(0);
  const awaited = useRef<1 | -1 | 0>(0); // the step to do when the text is found
  const text = useFind(state, attempt, (spans) => {
    if (awaited.current) goToNext(state, spans, awaited.current);
    awaited.current = 0;
  });
  const found = state.found.value;
  const go = (step: 1 | -1): void => {
    if (text.current !== state.find.value.trim()) awaited.current = step;
    else if (found) goToNext(state, found.spans, step);
  };
  const type = (e: Event): void => {
    awaited.current = 0;
    navigate({ find: (e.currentTarget as HTMLInputElement).value }, { replace: true });
  };
  const key = (e: KeyboardEvent): void => {
    if (e.key === 'Enter') go(e.shiftKey ? -1 : 1);
    else if (e.key === 'Escape') leave(e);
    else return;
    e.preventDefault();
  };
  const leave = (e: KeyboardEvent): void => {
    e.stopPropagation();
    if (state.find.value) navigate({ find: '', only: false }, { replace: true });
    else document.getElementById('spans')?.focus();
  };
  const after = found ? <FindCount state={state} /> : <kbd>/</kbd>;
  return (
    <div class={css.find} role="search">
      <Input
        id={findBox} inputRef={input} type="search" role="searchbox" class={css.box} icon="search" aria-label={t('Find in trace')} placeholder={t('Find in trace')} value={state.find.value} invalid={state.findError.value !== ''}
        title={state.findError.value || t('Names, services, IDs and attributes')} onInput={type} onKeyDown={key} after={after}
      />
      {found && (
        <>
          <Button kind="quiet" icon="up" label={t('Previous match (p)')} disabled={found.spans.length === 0} onClick={() => go(-1)} />
          <Button kind="quiet" icon="down" label={t('Next match (n)')} disabled={found.spans.length === 0} onClick={() => go(1)} />
          {found.message && <span role="alert" class={css.failed} title={found.message}><Text of="Attributes were not searched. {retry}" retry={<Button kind="quiet" onClick={() => setAttempt((n) => n + 1)}>{t('Retry')}</Button>} /></span>}
          <Check checked={state.only.value} onChange={(only) => navigate({ only }, { replace: true })}>{t('only matching')}</Check>
        </>
      )}
    </div>
  );
}

/** `3 of 12`; while attributes are being searched, with a sign that more can come. */
function FindCount({ state }: { state: TraceState }) {
  const found = state.found.value!;
  const span = activeSpan(state);
  const at = span === null ? 0 : position(found.spans, span);
  const n = found.spans.length;
  const text = n === 0 ? (found.complete || found.message ? t('no match') : '…') : at > 0 ? t('{at} of {n}', { at: count(at), n: count(n) }) : count(n);
  return <span class={css.count} title={found.complete ? undefined : found.message || t('Attributes are being searched.')}>{text}{!found.complete && n > 0 && !found.message ? '…' : ''}</span>;
}

const patience = 120;

/** Searches when the text or the trace changes. Returns the text whose matches are shown; `on` gets the first ones of a text. */
function useFind(state: TraceState, attempt: number, on: (spans: Int32Array) => void): { current: string } {
  const q = state.find.value.trim();
  const model = state.model.value;
  const first = useRef(true);
  const shown = useRef('');
  const latest = useRef(on);
  latest.current = on;
  useEffect(() => {
    if (q === '') {
      shown.current = '';
      state.found.value = null;
      state.findError.value = '';
      return;
    }
    const abort = new AbortController();
    const timer = setTimeout(() => void run(), first.current ? 0 : patience);
    first.current = false;
    async function run(): Promise<void> {
      try {
        await state.source.find(q, (result) => {
          if (abort.signal.aborted) return;
          state.found.value = result;
          if (result.complete || result.message || result.spans.length > 0) {
            shown.current = q;
            latest.current(result.spans);
          }
          if (result.complete) announce(tn(result.spans.length, '{spans} matches', '{spans} match', { spans: spansOf(result.spans.length) }));
        }, abort.signal);
        if (!abort.signal.aborted) state.findError.value = '';
      } catch (e) {
        if (!abort.signal.aborted) state.findError.value = e instanceof Error ? e.message : String(e);
      }
    }
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [q, model, attempt]);
  return shown;
}
