import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { slowNow } from '../../shell/clock';
import { duration, time } from '../../shell/format';
import { zone } from '../../shell/preferences';
import { t } from '../../shell/text';
import { rangeName } from '../../shell/time-input';
import { format, view, type View } from '../../shell/url';
import { selectsAll } from './links';
import css from './trail.module.css';

/** What a step of the trail consists of. */
export type Step = Pick<View, 'q' | 'range' | 'sel'>;

const maxSteps = 8;

// Kept while another page is shown.
const steps = signal<Step[]>([]);

/** The steps after a further one: a return to an earlier step drops those after it, and a selection that changes stays one step. */
export function stepsAfter(list: Step[], next: Step): Step[] {
  const known = list.findIndex((s) => isEqual(s, next));
  if (known >= 0) return list.slice(0, known + 1);
  const last = list.at(-1);
  const changes = last?.sel && next.sel && isEqual({ ...last, sel: next.sel }, next);
  return [...(changes ? list.slice(0, -1) : list), next].slice(-maxSteps);
}

function isEqual(a: Step, b: Step): boolean {
  return JSON.stringify([a.q, a.range, a.sel]) === JSON.stringify([b.q, b.range, b.sel]);
}

/** What a step changed, in a few words. */
export function stepText(step: Step, before: Step | undefined): string {
  const { sel } = step;
  const same = before !== undefined && before.q === step.q && JSON.stringify(before.range) === JSON.stringify(step.range);
  if (sel && (same || !before)) return selectionText(sel);
  if (before && before.q === step.q) return rangeName(step.range, zone.value, slowNow.value);
  return selectsAll(step.q) ? t('All traces') : step.q;
}

function selectionText(sel: NonNullable<View['sel']>): string {
  if (sel === 'errors') return t('errors');
  if (sel === 'slowest') return t('slowest 5 %');
  const at = (ms: number): string => time(ms, zone.value, sel.t1, 0);
  return t('{t0} to {t1}, {d0} to {d1}', { t0: at(sel.t0), t1: at(sel.t1), d0: duration(sel.d0), d1: duration(sel.d1) });
}

/** The way to the current search and selection. A click on a step undoes those after it. Nothing at the first step. */
export default function Trail() {
  const { q, range, sel } = view.value;
  // A link to this page begins a new trail, a return to it does not.
  useEffect(() => { if (!steps.value.some((s) => isEqual(s, view.value))) steps.value = []; }, []);
  useEffect(() => { steps.value = stepsAfter(steps.value, { q, range, sel }); }, [q, range, sel]);
  const list = steps.value;
  if (list.length < 2) return null;
  return (
    <nav class={css.trail} aria-label={t('Search steps')}>
      <ol>
        {list.map((step, i) => {
          const text = stepText(step, list[i - 1]);
          return <li key={i}>{i < list.length - 1 ? <a href={format({ ...view.value, ...step })} title={t('Back to {text}', { text })}>{text}</a> : <span aria-current="step" title={text}>{text}</span>}</li>;
        })}
      </ol>
    </nav>
  );
}
