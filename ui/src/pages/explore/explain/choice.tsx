import type { Heatmap } from '../../../api/types';
import { withoutErrors } from '../../../query/edit';
import { Button, Segmented } from '../../../shell/controls';
import { useKeys } from '../../../shell/keys';
import { t } from '../../../shell/text';
import { navigate, view } from '../../../shell/url';
import { slowestBox } from './selection';
import css from './choice.module.css';

/** Explains the selected box; also with the key x. */
export function ExplainButton() {
  const explain = (): void => navigate({ tab: 'explain' });
  useKeys(t('Heatmap'), [{ keys: ['x'], label: t('Explain the selection'), run: explain }]);
  if (view.value.tab === 'explain') return null;
  return <Button kind="primary" title={t('How the selected traces differ from the others (x)')} onClick={explain}>{t('Explain')} <kbd>x</kbd></Button>;
}

/** Selects what users often ask for, and explains it. */
export function ExplainButtons({ data }: { data: Heatmap }) {
  const box = slowestBox(data);
  return (
    <>
      {data.errors > 0 && <Button kind="quiet" onClick={explainErrors}>{t('Explain errors')}</Button>}
      {box && <Button kind="quiet" onClick={() => navigate({ sel: box, tab: 'explain' })}>{t('Explain slowest 5 %')}</Button>}
    </>
  );
}

/** Selects everything with errors and explains it. A search that finds only errors leaves nothing to compare with: it finds all others, too. */
export function explainErrors(): void {
  navigate({ q: withoutErrors(view.value.q), sel: 'errors', tab: 'explain' });
}

/** The selection of everything with errors. */
export function ErrorSelection() {
  return (
    <span class={css.selection}>
      <b>{view.value.of === 'spans' ? t('Spans with errors are selected') : t('Traces with errors are selected')}</b>
      <ExplainButton />
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
          { value: 'others', label: t('all others'), title: t('Other traces of the time range') },
          { value: 'time', label: t('same time'), title: t('Other traces of the time of the selection') },
          { value: 'day', label: t('one day earlier'), title: t('All traces of the time of the selection, 24 hours earlier') },
        ]}
      />
    </span>
  );
}
