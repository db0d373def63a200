import { Button } from '../shell/controls';
import { Popover } from '../shell/floating';
import { t } from '../shell/text';
import { Highlight } from './highlight';
import { readHistory } from './history';
import css from './history-menu.module.css';

/** The last searches of this browser. */
export function HistoryMenu({ onChoose }: { onChoose: (text: string) => void }) {
  return (
    <Popover label={t('Last searches')} align="end" role="menu" trigger={(props) => <Button {...props} class={css.trigger} aria-label={t('History')} icon="clock"><span class={css.word}>{t('History')}</span></Button>}>
      {(close) => <Entries onChoose={(text) => { close(); onChoose(text); }} />}
    </Popover>
  );
}

function Entries({ onChoose }: { onChoose: (text: string) => void }) {
  const entries = readHistory();
  const key = (e: KeyboardEvent): void => {
    const buttons = [...(e.currentTarget as HTMLElement).querySelectorAll('button')];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const next = e.key === 'ArrowDown' ? at + 1 : e.key === 'ArrowUp' ? at - 1 : -1;
    if (next < 0 || next >= buttons.length) return;
    e.preventDefault();
    buttons[next].focus();
  };
  if (entries.length === 0) return <p class={css.none}>{t('No searches yet. This browser keeps the last 50.')}</p>;
  return (
    <div role="presentation" class={css.list} onKeyDown={key}>
      {entries.map((text) => <button key={text} type="button" role="menuitem" class={css.entry} title={text} onClick={() => onChoose(text)}><Highlight text={text} /></button>)}
    </div>
  );
}
