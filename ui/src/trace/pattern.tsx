import { useEffect } from 'preact/hooks';
import { patternOf, type PatternSpan } from '../query/edit';
import { Button } from '../shell/controls';
import { count } from '../shell/format';
import { announce } from '../shell/live-region';
import { t, tn } from '../shell/text';
import { navigate } from '../shell/url';
import { exploreView } from './detail/attributes';
import { flag, type TraceModel } from './model/types';
import type { TraceState } from './state';
import css from './pattern.module.css';

/** The chosen spans as a pattern, in the order of the trace: each with its nearest chosen ancestor. */
export function patternSpans(m: TraceModel, spans: readonly number[]): PatternSpan[] {
  const chosen = [...spans].sort((a, b) => a - b);
  return chosen.map((span) => {
    let up = m.parent[span];
    while (up >= 0 && !chosen.includes(up)) up = m.parent[up];
    return {
      service: m.services[m.service[span]], name: m.names[m.name[span]], error: (m.flags[span] & flag.error) !== 0, duration: m.end[span] - m.start[span],
      above: up < 0 ? -1 : chosen.indexOf(up), child: up >= 0 && up === m.parent[span],
    };
  });
}

/** What was chosen, and the search for it. */
export default function Pattern({ state }: { state: TraceState }) {
  const model = state.model.value;
  const chosen = state.chosen.value;
  const search = patternOf(patternSpans(model, chosen));
  useEffect(() => announce(tn(chosen.length, '{n} row selected', '{n} rows selected', { n: count(chosen.length) })), [chosen.length]);
  return (
    <div class={css.bar} role="region" aria-label={t('Pattern')}>
      <span class={css.count}>{tn(chosen.length, '{n} row selected', '{n} rows selected', { n: count(chosen.length) })}</span>
      <code class={css.search} title={search}>{search}</code>
      {chosen.length < 2 && <span class={css.hint}>{t('Select another row with Space, m or Ctrl and a click.')}</span>}
      <Button kind="primary" disabled={chosen.length < 2} onClick={() => navigate(exploreView(search, { start: model.begin }))}>{t('Find this pattern')}</Button>
      <Button kind="quiet" icon="x" label={t('Clear the selected rows')} onClick={() => { state.chosen.value = []; }} />
    </div>
  );
}
