import type { ComponentChildren } from 'preact';
import { FormRow } from '../../query/form-row';
import type { Problem } from '../../query/problem';
import { QueryBar } from '../../query/query-bar';
import type { Period } from '../../query/suggest';
import css from './explore.module.css';

interface SearchHeadProps {
  draft: string;
  onDraft: (text: string) => void;
  onRun: (text: string) => void;
  problem: Problem | null;
  period: () => Period;
  /** Buttons after the text. */
  children?: ComponentChildren;
}

/** The search as form and as text. */
export function SearchHead({ draft, onDraft, onRun, problem, period, children }: SearchHeadProps) {
  return (
    <div class={css.search} role="search">
      <div class={css.form}><FormRow draft={draft} period={period} onRun={onRun} /></div>
      <div class={css.bar}>
        <QueryBar draft={draft} onDraft={onDraft} onRun={onRun} problem={problem} period={period} />
        {children}
      </div>
    </div>
  );
}
