import { useState } from 'preact/hooks';
import { Dialog } from './dialog';
import { Icon } from './icons';
import { lazy } from './lazy';
import type { PaletteListProps } from './palette-list';
import { t } from './text';
import css from './palette.module.css';

export const PaletteList = lazy<PaletteListProps>(() => import('./dialogs').then((m) => ({ default: m.PaletteList })));

/** The jump box. Its list can be loaded later than the field, which takes what is typed right after the shortcut. */
export function Palette({ onClose }: { onClose: () => void }) {
  const [typed, setTyped] = useState('');
  const [index, setIndex] = useState(0);
  const [entered, setEntered] = useState(false);
  const [chosen, setChosen] = useState(false);
  const key = (e: KeyboardEvent): void => {
    const step = e.key === 'ArrowDown' ? 1 : e.key === 'ArrowUp' ? -1 : 0;
    if (e.key === 'Enter') setEntered(true);
    else if (step) setIndex(index + step);
    else return;
    e.preventDefault();
  };
  return (
    <Dialog title={t('Jump to')} bare onClose={onClose} class={css.palette}>
      <div class={css.field}>
        <Icon name="search" />
        <input
          class={css.input} role="combobox" aria-label={t('Trace ID, service or text')} aria-expanded="true" aria-controls="palette-list" aria-autocomplete="list"
          aria-activedescendant={chosen ? `palette-${index}` : undefined} placeholder={t('Trace ID, service or text')} autocomplete="off" spellcheck={false} autofocus
          value={typed} onInput={(e) => { setTyped(e.currentTarget.value); setIndex(0); setEntered(false); }} onKeyDown={key}
        />
        <kbd>Esc</kbd>
      </div>
      <PaletteList typed={typed} index={index} entered={entered} onEntered={() => setEntered(false)} onIndex={setIndex} onChosen={setChosen} onClose={onClose} />
    </Dialog>
  );
}
