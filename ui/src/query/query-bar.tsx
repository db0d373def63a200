import type { ComponentChildren } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Button, classes } from '../shell/controls';
import { Icon } from '../shell/icons';
import { useKeys, type KeyBinding } from '../shell/keys';
import { t } from '../shell/text';
import { SearchesMenu } from './searches-menu';
import { Highlight } from './highlight';
import type { Problem } from './problem';
import type { Period, Suggestion } from './suggest';
import { SuggestionList } from './suggestion-list';
import { useSuggestions, type Completion } from './use-suggestions';
import css from './query-bar.module.css';

interface QueryBarProps {
  /** The text that is being written. */
  draft: string;
  onDraft: (text: string) => void;
  onRun: (text: string) => void;
  problem: Problem | null;
  period: () => Period;
}

/** The search as text: colors, completion, errors under the token, history. */
export function QueryBar({ draft, onDraft, onRun, problem, period }: QueryBarProps) {
  const input = useRef<HTMLInputElement>(null);
  const [caret, setCaret] = useState(0);
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const pendingCaret = useRef(-1);
  const completion = useSuggestions(draft, caret, open, period);
  const id = useId();
  const list = completion?.list ?? [];
  useKeys(t('Search'), shortcuts(() => input.current?.focus()));
  // Before the next key. The same list in another response keeps the chosen suggestion.
  useLayoutEffect(() => setActive(-1), [draft, caret, list.map((s) => s.text).join('\n')]);
  useLayoutEffect(() => {
    if (pendingCaret.current < 0) return;
    input.current!.setSelectionRange(pendingCaret.current, pendingCaret.current);
    pendingCaret.current = -1;
  }, [draft]);
  const track = (): void => setCaret(input.current!.selectionStart ?? 0);
  const accept = (s: Suggestion, c: Completion): void => {
    const { text, at } = insertion(draft, s, c);
    pendingCaret.current = at;
    onDraft(text);
    setCaret(at);
    setOpen(s.more);
    input.current!.focus();
  };
  const run = (text = draft): void => {
    setOpen(false);
    onRun(text);
  };
  const key = (e: KeyboardEvent): void => {
    const handled = listKey(e, { open: open && list.length > 0, active, n: list.length, setActive, setOpen, accept: (i) => accept(list[i], completion!), run: () => run() });
    if (handled) e.preventDefault();
  };
  return (
    <div class={css.row}>
      <div class={css.wrap}>
        <div class={classes(css.field, problem && css.invalid)}>
          <Icon name="search" />
          <Overlay input={input} draft={draft} problem={problem} caret={caret}>
            <input
              ref={input} class={css.input} type="text" role="combobox" aria-label={t('Search')} aria-expanded={open && list.length > 0} aria-autocomplete="list" aria-controls={`${id}list`}
              aria-activedescendant={active >= 0 ? `${id}option${active}` : undefined} aria-invalid={problem ? 'true' : undefined} aria-describedby={problem ? `${id}problem` : undefined}
              autocomplete="off" autocapitalize="off" spellcheck={false} value={draft} placeholder={t('{ service = "checkout" && duration > 1s }')}
              onInput={(e) => { onDraft(e.currentTarget.value); track(); setOpen(true); }}
              onKeyDown={key} onKeyUp={track} onClick={() => { track(); if (draft === '') setOpen(true); }} onBlur={() => setOpen(false)}
            />
          </Overlay>
          {draft === '' && <kbd class={css.hint}>/</kbd>}
        </div>
        {open && completion && list.length > 0 && (
          <SuggestionList id={id} completion={completion} active={active} left={offsetOf(input.current!, completion.context.begin)} onChoose={(i) => accept(list[i], completion)} />
        )}
      </div>
      <SearchesMenu onChoose={(text) => { onDraft(text); run(text); }} />
      <Button kind="primary" class={css.run} onClick={() => run()}>{t('Run')}{' '}<kbd class={css.runKey}>↵</kbd></Button>
      {problem && <p id={`${id}problem`} role="alert" class={css.problem}>{problem.end > 0 ? t('Column {column}: ', { column: problem.begin + 1 }) : ''}{problem.message}</p>}
    </div>
  );
}

function shortcuts(focus: () => void): KeyBinding[] {
  return [{ keys: ['/'], label: t('Edit the search'), run: focus }, { keys: [t('Ctrl Space')], label: t('Complete') }, { keys: ['Enter'], label: t('Run the search') }];
}

/** The text after a completion, and the caret in it. */
function insertion(draft: string, s: Suggestion, { context: c }: Completion): { text: string; at: number } {
  const after = draft.slice(c.end);
  // Spaces that are already there are not doubled.
  const inserted = s.insert.endsWith(' ') && after.startsWith(' ') ? s.insert.slice(0, -1) : s.insert;
  const begin = s.whole ? c.fieldBegin : c.begin;
  const glue = begin > 0 && /[^\s({!,]/.test(draft[begin - 1]) ? ' ' : '';
  const text = draft.slice(0, begin) + glue + inserted;
  return { text: text + after, at: text.length + (inserted.length < s.insert.length ? 1 : 0) };
}

interface ListState {
  open: boolean;
  active: number;
  n: number;
  setActive: (i: number) => void;
  setOpen: (open: boolean) => void;
  accept: (i: number) => void;
  run: () => void;
}

/** Keys of the combobox. Returns whether the key was handled. */
function listKey(e: KeyboardEvent, s: ListState): boolean {
  if (e.key === ' ' && (e.ctrlKey || e.metaKey)) return s.setOpen(true), true;
  if (e.key === 'Enter' && !e.isComposing) return s.open && s.active >= 0 ? s.accept(s.active) : s.run(), true;
  if (!s.open) return e.key === 'ArrowDown' && (s.setOpen(true), true);
  switch (e.key) {
    case 'ArrowDown': return s.setActive((s.active + 1) % s.n), true;
    case 'ArrowUp': return s.setActive((s.active <= 0 ? s.n : s.active) - 1), true;
    case 'Tab': return !e.shiftKey && (s.accept(Math.max(0, s.active)), true);
    case 'Escape': return s.setOpen(false), e.stopPropagation(), true;
  }
  return false;
}

/** Shows the colors over the text of the input, which is transparent, at the same scroll position. */
function Overlay({ input, draft, problem, caret, children }: { input: { current: HTMLInputElement | null }; draft: string; problem: Problem | null; caret: number; children: ComponentChildren }) {
  const colors = useRef<HTMLDivElement>(null);
  const follow = (): void => { colors.current!.style.transform = `translateX(${-input.current!.scrollLeft}px)`; };
  useLayoutEffect(() => { if (document.activeElement === input.current) follow(); }, [draft, caret]); // otherwise the text begins at its start
  useEffect(() => {
    const el = input.current!;
    el.addEventListener('scroll', follow);
    return () => el.removeEventListener('scroll', follow);
  }, []);
  return (
    <span class={css.text}>
      {children}
      <span class={css.clip} aria-hidden="true"><div ref={colors} class={css.colors}><Highlight text={draft} problem={problem} /></div></span>
    </span>
  );
}

let charWidth = 0;

/** Distance of a character from the left edge of the field. */
function offsetOf(input: HTMLInputElement, index: number): number {
  if (!charWidth) {
    const ctx = document.createElement('canvas').getContext('2d')!;
    ctx.font = getComputedStyle(input).font;
    charWidth = ctx.measureText('0').width;
  }
  return input.offsetLeft + 24 + index * charWidth - input.scrollLeft;
}
