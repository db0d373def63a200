import type { ComponentChildren } from 'preact';
import { useTitle } from '../../shell/title';
import css from './later.module.css';

/** A page whose own contents come later: says so in one sentence, and shows what works now. */
export function Frame({ title, sentence, note, children }: { title: string; sentence: ComponentChildren; note: ComponentChildren; children?: ComponentChildren }) {
  useTitle(title);
  return (
    <div class={css.page}>
      <h1 class={css.sentence}>{sentence}</h1>
      <p class={css.note}>{note}</p>
      {children}
    </div>
  );
}
