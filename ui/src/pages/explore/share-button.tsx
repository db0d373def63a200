import { Button } from '../../shell/controls';
import { iso } from '../../shell/format';
import { t } from '../../shell/text';
import { copy } from '../../shell/toast';
import { format, view } from '../../shell/url';
import type { Run } from './run';
import css from './results.module.css';

/** Copies a link that shows the same traces later: its time range is fixed. */
export function ShareButton({ run }: { run: Run }) {
  const share = (): void => {
    const range = { from: iso(run.from), to: iso(run.to) };
    void copy(location.origin + format({ ...view.value, range }), t('Link'));
  };
  return <Button kind="quiet" icon="copy" aria-label={t('Copy link')} title={t('Copies a link to these results with this time range')} onClick={share}><span class={css.wide}>{t('Copy link')}</span></Button>;
}
