import { signal } from '@preact/signals';
import { announce } from './live-region';
import { Button } from './controls';
import { t } from './text';
import css from './toast.module.css';

interface ToastState {
  text: string;
  undo?: () => void;
}

const shown = signal<ToastState | null>(null);
let timer = 0;

/** Shows the result of an action for 4 seconds, with an undo where possible. */
export function toast(text: string, undo?: () => void): void {
  shown.value = { text, undo };
  announce(text);
  clearTimeout(timer);
  timer = window.setTimeout(() => { shown.value = null; }, 4000);
}

/** Copies a text and says so; `what` names it: "Link". */
export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    if (!copyBySelection(text)) return toast(t('The browser does not allow copying. Select the text and copy it yourself.'));
  }
  toast(t('{what} copied', { what }));
}

/** The clipboard API exists only on HTTPS and localhost. */
function copyBySelection(text: string): boolean {
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'visually-hidden';
  const focused = document.activeElement as HTMLElement | null;
  (document.querySelector('dialog[open]') ?? document.body).append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  focused?.focus();
  return done;
}

/** The place of toasts, once in the shell. */
export function Toaster() {
  const item = shown.value;
  if (!item) return null;
  const undo = (): void => {
    shown.value = null;
    item.undo!();
  };
  return <div class={css.toast}>{item.text}{item.undo && <Button kind="quiet" onClick={undo}>{t('Undo')}</Button>}</div>;
}
