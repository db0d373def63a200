import type { Signal } from '@preact/signals';
import { effect, signal } from '@preact/signals';
import { dragHandle } from '../shell/drag';
import css from './splitter.module.css';

/** A width that the user can change, kept in the browser. */
export interface StoredWidth {
  value: Signal<number>;
  least: number;
  most: number;
}

/** A width in pixels that is kept in the local storage where it is allowed. */
export function storedWidth(key: string, initial: number, least: number, most: number): StoredWidth {
  const value = signal(initial);
  try {
    const stored = Number(localStorage.getItem(key));
    if (stored >= least && stored <= most) value.value = stored;
    effect(() => {
      if (value.value === initial) localStorage.removeItem(key);
      else localStorage.setItem(key, String(value.value));
    });
  } catch {
    // Without storage, the width lasts as long as the page.
  }
  return { value, least, most };
}

/** A vertical separator between two regions. `direction` is 1 if the region is left of it, -1 if right. */
export function Splitter({ width, label, direction, class: extra }: { width: StoredWidth; label: string; direction: 1 | -1; class?: string }) {
  const set = (w: number): void => { width.value.value = Math.round(Math.min(width.most, Math.max(width.least, w))); };
  const drag = (e: PointerEvent): void => {
    const [from, before] = [e.clientX, width.value.value];
    dragHandle(e, (x) => set(before + direction * (x - from)));
  };
  const key = (e: KeyboardEvent): void => {
    const step = e.key === 'ArrowRight' ? 16 : e.key === 'ArrowLeft' ? -16 : 0;
    if (!step) return;
    e.preventDefault();
    e.stopPropagation();
    set(width.value.value + direction * step);
  };
  return (
    <div
      class={`${css.splitter} ${extra ?? ''}`} role="separator" aria-orientation="vertical" aria-label={label} tabIndex={0}
      aria-valuenow={width.value.value} aria-valuemin={width.least} aria-valuemax={width.most} onPointerDown={drag} onKeyDown={key}
    />
  );
}
