import type { ComponentChildren } from 'preact';
import { FormRow } from '../../query/form-row';
import { metricsOf } from '../../query/metrics';
import { parseQuery } from '../../query/parse';
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

/** The search as form and as text. Of a metrics query, the form has the conditions on spans. */
export function SearchHead({ draft, onDraft, onRun, problem, period, children }: SearchHeadProps) {
  const metrics = metricsOf(draft);
  const run = metrics ? (text: string): void => onRun(`${text || '{}'} ${metrics.rest}`) : onRun;
  return (
    <div class={css.search} role="search">
      {(!metrics || parseQuery(metrics.set)) && <div class={css.form}><FormRow draft={metrics?.set ?? draft} period={period} onRun={run} /></div>}
      <div class={css.bar}>
        <QueryBar draft={draft} onDraft={onDraft} onRun={onRun} problem={problem} period={period} />
        {children}
      </div>
    </div>
  );
}
