import { Button } from '../shell/controls';
import { Popover } from '../shell/floating';
import { lazy } from '../shell/lazy';
import { t } from '../shell/text';
import css from './searches-menu.module.css';

const Panel = lazy(() => import('./searches-panel'));

/** Saved and last searches of this browser. */
export function SearchesMenu({ onChoose }: { onChoose: (text: string) => void }) {
  return (
    <Popover label={t('Saved and recent searches')} align="end" trigger={(props) => <Button {...props} aria-label={t('Saved and recent searches')} icon="clock"><span class={css.word}>{t('Saved')}</span></Button>}>
      {(close) => <Panel close={close} onChoose={(text) => { close(); onChoose(text); }} />}
    </Popover>
  );
}
