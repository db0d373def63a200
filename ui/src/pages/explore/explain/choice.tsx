import type { Heatmap } from '../../../api/types';
import { withoutErrors } from '../../../query/edit';
import { Button, Segmented } from '../../../shell/controls';
import { count } from '../../../shell/format';
import { useKeys } from '../../../shell/keys';
import { t } from '../../../shell/text';
import { navigate, view } from '../../../shell/url';
import css from './choice.module.css';

/** Explains the `n` selected traces or spans; also with the key x. */
export function ExplainButton({ n }: { n: number | undefined }) {
  const explain = (): void => navigate({ tab: 'explain' });
  useKeys(t('Heatmap'), [{ keys: ['x'], label: t('Explain the selection'), run: explain }]);
  if (view.value.tab === 'explain') return null;
  return <Button kind="primary" class={css.explain} title={t('How the selected traces differ from the others (x)')} onClick={explain}>{t('Explain')} <kbd>x</kbd>{n !== undefined && <span class={css.small}>{count(n)}</span>}</Button>;
}

/** Selects what users often ask for, and explains it. On small screens the tab offers both. */
export function ExplainButtons({ data }: { data: Heatmap }) {
  return (
    <>
      {data.errors > 0 && <Button kind="quiet" class={css.large} onClick={explainErrors}>{t('Explain errors')}</Button>}
      {data.estimatedSpans > 0 && <Button kind="quiet" class={css.large} onClick={explainSlowest}>{t('Explain slowest 5 %')}</Button>}
      {data.estimatedSpans > 0 && view.value.tab !== 'explain' && <Button kind="primary" class={css.small} onClick={() => navigate({ tab: 'explain' })}>{t('Explain')}</Button>}
    </>
  );
}

/** Selects everything with errors and explains it. A search that finds only errors leaves nothing to compare with: it finds all others, too. */
export function explainErrors(): void {
  navigate({ q: withoutErrors(view.value.q), sel: 'errors', tab: 'explain' });
}

/** Selects the slowest 5 % of what the heatmap counts, and explains it. */
export function explainSlowest(): void {
  navigate({ sel: 'slowest', tab: 'explain' });
}

/** A selection that has a name instead of a box. */
export function NamedSelection({ n }: { n: number | undefined }) {
  const { sel, of } = view.value;
  const traces = sel === 'slowest' ? t('The slowest 5 % of the traces are selected') : t('Traces with errors are selected');
  const spans = sel === 'slowest' ? t('The slowest 5 % of the spans are selected') : t('Spans with errors are selected');
  return (
    <span class={css.selection}>
      <b>{of === 'spans' ? spans : traces}</b>
      <ExplainButton n={n} />
      <Button kind="quiet" icon="x" label={t('Clear the selection')} onClick={() => navigate({ sel: null })} />
    </span>
  );
}

/** What the selection is compared with. */
export function BaselineChoice() {
  return (
    <span class={css.baseline}>
      <span>{t('Compared with')}</span>
      <Segmented
        label={t('Compared with')} value={view.value.base || 'others'} onChange={(base) => navigate({ base: base === 'others' ? '' : base })}
        segments={[
          { value: 'others', label: t('all others'), title: t('Other traces in the time range') },
          { value: 'time', label: t('same time'), title: t('Other traces from the same time as the selection') },
          { value: 'day', label: t('one day earlier'), title: t('All traces from 24 hours before the selection') },
        ]}
      />
    </span>
  );
}
