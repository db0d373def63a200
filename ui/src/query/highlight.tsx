import type { ComponentChildren } from 'preact';
import { lex, type Token } from './lex';
import type { Problem } from './problem';
import css from './highlight.module.css';

const words = new Set(['true', 'false', 'nil', 'exists', 'select']);

function classOf(t: Token): string {
  if (t.kind === 'word') return words.has(t.text) ? css.operator : css.key;
  return { number: css.number, quoted: css.text, operator: css.operator, invalid: css.invalid }[t.kind];
}

/** A search with its parts in colors. A problem is underlined. */
export function Highlight({ text, problem }: { text: string; problem?: Problem | null }): ComponentChildren {
  const parts: ComponentChildren[] = [];
  let at = 0;
  for (const t of lex(text)) {
    const bad = problem && t.begin < problem.end && t.end > problem.begin;
    parts.push(text.slice(at, t.begin), <span key={t.begin} class={bad ? `${classOf(t)} ${css.problem}` : classOf(t)} data-problem={bad || undefined}>{text.slice(t.begin, t.end)}</span>);
    at = t.end;
  }
  parts.push(text.slice(at));
  if (problem && problem.begin >= text.length) parts.push(<span key="end" class={css.problem}>{'\u00a0'}</span>);
  return <>{parts}</>;
}
