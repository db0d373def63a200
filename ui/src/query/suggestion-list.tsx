import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { classes } from '../shell/controls';
import { t, Text } from '../shell/text';
import type { Completion } from './use-suggestions';
import css from './suggestion-list.module.css';

/** The list of a combobox. The focus stays in its field. */
export function SuggestionList({ id, completion, active, left, onChoose }: { id: string; completion: Completion; active: number; left: number; onChoose: (i: number) => void }) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => { list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' }); }, [active]);
  const { prefix } = completion.context;
  return (
    <div class={css.surface} style={{ '--left': `${left}px` }} onPointerDown={(e) => e.preventDefault()}>
      <div class={css.head}>{completion.title}</div>
      <div ref={list} id={`${id}list`} role="listbox" aria-label={completion.title} class={css.list}>
        {completion.list.map((s, i) => (
          <div key={s.text} id={`${id}option${i}`} role="option" aria-selected={i === active} class={classes(css.option, (i === active || (active < 0 && i === 0)) && css.on)} onClick={() => onChoose(i)}>
            <span class={css.name} title={s.text}>{marked(s.text, prefix)}</span>
            <span class={css.note}>{s.note}</span>
          </div>
        ))}
        {completion.more && <div class={css.more}>{t('There are more. Type more characters.')}</div>}
      </div>
      <div class={css.foot} aria-hidden="true"><span><kbd>↑</kbd>{'  '}<Text of="{kbd} choose" kbd={<kbd>↓</kbd>} /></span><span><kbd>Tab</kbd>{' '}{t('insert')}</span><span><kbd>Esc</kbd>{' '}{t('close')}</span></div>
    </div>
  );
}

/** A text with the part that was typed in bold. */
function marked(text: string, typed: string): ComponentChildren {
  const at = typed ? text.toLowerCase().indexOf(typed.toLowerCase()) : -1;
  return at < 0 ? text : <>{text.slice(0, at)}<b>{text.slice(at, at + typed.length)}</b>{text.slice(at + typed.length)}</>;
}
