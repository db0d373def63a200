import { Button } from '../../../shell/controls';
import { now } from '../../../shell/clock';
import { elapsed } from '../../../shell/format';
import { Empty, Failure } from '../../../shell/states';
import { t } from '../../../shell/text';
import { navigate } from '../../../shell/url';
import type { LiveState } from './use-live';
import css from './live.module.css';

/** Why nothing new comes, and ways out. Nothing while traces come. `earlier`: the heatmap has traces from before. */
export function Waiting({ live, empty, earlier, all }: { live: LiveState; empty: boolean; earlier: boolean; all: boolean }) {
  const c = live.connection;
  const stored = <Button kind="quiet" onClick={() => navigate({ live: false })}>{t('Show stored traces')}</Button>;
  if (c.state === 'failed') return <div class={css.waiting}><Failure what={t('Live')} error={c.error} retry={c.error.status === 501 ? undefined : live.retry} />{stored}</div>;
  if (c.state === 'waiting' && c.error) {
    const wait = elapsed(now.value, c.until + 999);
    return <div class={css.waiting}><Failure what={t('Live, next attempt in {time}', { time: wait })} error={c.error} retry={live.retry} />{stored}</div>;
  }
  if (!empty || c.state !== 'open') return null;
  return (
    <div class={css.waiting}>
      <Empty title={earlier ? t('Waiting for the next trace that matches.') : t('Waiting for the first trace that matches.')}>
        {stored}
        {!all && <Button kind="quiet" onClick={() => navigate({ q: '' })}>{t('Follow all traces')}</Button>}
      </Empty>
    </div>
  );
}
