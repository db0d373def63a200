// Keyboard shortcuts: pages register what they have, `?` lists it.

import { signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { t } from './text';

/** A shortcut. */
export interface KeyBinding {
  /** Alternatives, as in KeyboardEvent.key, after modifiers: `['ArrowDown', 'j']`, `['Mod k']` (Ctrl or Cmd), `['Shift x']`. */
  keys: string[];
  /** What happens: a verb. */
  label: string;
  /** Absent if the component handles the key itself and only wants it to be listed. Return false to let the event pass. */
  run?: (e: KeyboardEvent) => void | false;
  /** Also while the user types in a field. */
  always?: boolean;
}

interface Group {
  name: string;
  bindings: KeyBinding[];
}

/** Groups of shortcuts of the mounted components, in the order of their registration. */
export const keyGroups = signal<Group[]>([]);

/** Registers shortcuts as long as the component is mounted. */
export function useKeys(name: string, bindings: KeyBinding[]): void {
  const current = useRef(bindings);
  current.current = bindings;
  useLayoutEffect(() => { // before the page is seen
    // The functions of the latest rendering run, without registering again.
    const group: Group = { name, get bindings() { return current.current; } };
    keyGroups.value = [...keyGroups.value, group];
    return () => { keyGroups.value = keyGroups.value.filter((g) => g !== group); };
  }, [name]);
}

/** Whether an event is the key. */
export function matchesKey(e: Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey' | 'shiftKey'>, key: string): boolean {
  const parts = key.split(' ');
  const name = parts.pop() || ' ';
  const mod = parts.includes('Mod');
  if ((e.ctrlKey || e.metaKey) !== mod || e.altKey) return false;
  // Shift is part of a character such as `?`.
  if (parts.includes('Shift') && !e.shiftKey) return false;
  if (name.length > 1 && !parts.includes('Shift') && e.shiftKey) return false;
  return parts.length ? e.key.toLowerCase() === name.toLowerCase() : e.key === name;
}

function typing(target: EventTarget | null): boolean {
  const e = target as HTMLElement | null;
  return !!e?.closest?.('input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]');
}

/** Runs the shortcut of an event; the last registered one wins. */
export function dispatchKey(e: KeyboardEvent): void {
  if (e.defaultPrevented || document.querySelector('dialog[open]')) return;
  const busy = typing(e.target);
  for (const group of [...keyGroups.value].reverse()) {
    for (const b of group.bindings) {
      if (!b.run || (busy && !b.always) || !b.keys.some((k) => matchesKey(e, k))) continue;
      if (b.run(e) !== false) e.preventDefault();
      return;
    }
  }
}

const names: Record<string, string> = { ArrowUp: '↑', ArrowDown: '↓', ArrowLeft: '←', ArrowRight: '→', Escape: 'Esc' };

/** Text of a key for a `kbd` element: `Ctrl K`, `↓`. */
export function keyName(key: string, mac: boolean): string {
  if (key === ' ') return t('Space');
  return key.split(' ').map((part, _, all) => {
    if (part === 'Mod') return mac ? '⌘' : t('Ctrl');
    if (part in names) return names[part];
    return all.length > 1 && part.length === 1 ? part.toUpperCase() : part;
  }).join(' ');
}

/** Whether the keyboard has a Cmd key. */
export const isMac = typeof navigator !== 'undefined' && /Mac|iPhone|iPad/.test(navigator.userAgent);
