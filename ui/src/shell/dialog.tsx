import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { Button, classes } from './controls';
import { t } from './text';
import css from './dialog.module.css';

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  /** Hides title and close button, for surfaces that explain themselves. */
  bare?: boolean;
  class?: string;
}

/** A modal dialog. The browser keeps the focus inside, closes it with Esc and gives the focus back. */
export function Dialog({ title, onClose, children, bare, class: extra }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  // Immediately, so that no key is lost that is typed right after the shortcut.
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    dialog.current!.showModal();
    dialog.current!.querySelector<HTMLElement>('input:not([type=radio])')?.focus();
    return () => before?.focus();
  }, []);
  return (
    <dialog ref={dialog} class={classes(css.dialog, extra)} aria-label={title} onClose={onClose} onClick={(e) => { if (e.target === dialog.current) onClose(); }}>
      <div class={css.content}>
        {!bare && (
          <div class={css.head}>
            <h2 class={css.title}>{title}</h2>
            <Button kind="quiet" icon="x" label={t('Close')} onClick={onClose} />
          </div>
        )}
        {children}
      </div>
    </dialog>
  );
}
