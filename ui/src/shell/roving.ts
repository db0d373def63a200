import type { RefObject } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

const cells = 'a[href], button:not(:disabled)';

/** Index of the focused row and of the control in it; what Tab returns to. */
const places = new WeakMap<HTMLElement, [number, number]>();

/**
 * Makes the links and buttons in the rows (`[data-row]`) of a container one tab stop: up and down, Home and End move between rows, left and right within one.
 * Call it in each rendering.
 */
export function useRovingRows(container: RefObject<HTMLElement | null>): void {
  const attached = useRef<{ root: HTMLElement; detach: () => void } | null>(null);
  useLayoutEffect(() => {
    // The container may be rendered later, when there is data.
    const root = container.current;
    if (attached.current?.root !== root) {
      attached.current?.detach();
      attached.current = root && { root, detach: attach(root) };
    }
    if (root) settle(root);
  });
  useLayoutEffect(() => () => attached.current?.detach(), []);
}

function attach(root: HTMLElement): () => void {
  const key = (e: KeyboardEvent): void => move(root, e);
  const focus = (e: FocusEvent): void => remember(root, e.target as Element);
  root.addEventListener('keydown', key);
  root.addEventListener('focusin', focus);
  return () => {
    root.removeEventListener('keydown', key);
    root.removeEventListener('focusin', focus);
  };
}

function rowsOf(root: HTMLElement): HTMLElement[][] {
  return [...root.querySelectorAll<HTMLElement>('[data-row]')].map((row) => [...row.querySelectorAll<HTMLElement>(cells)].filter((e) => e.offsetParent !== null)).filter((r) => r.length > 0);
}

function settle(root: HTMLElement): void {
  const rows = rowsOf(root);
  const focused = rows.findIndex((r) => r.includes(document.activeElement as HTMLElement));
  // The focused row can have moved.
  if (focused >= 0) places.set(root, [focused, rows[focused].indexOf(document.activeElement as HTMLElement)]);
  const [row, cell] = places.get(root) ?? [0, 0];
  const current = rows[Math.min(row, rows.length - 1)];
  rows.forEach((r) => r.forEach((e) => { e.tabIndex = -1; }));
  if (current) current[Math.min(cell, current.length - 1)].tabIndex = 0;
}

function remember(root: HTMLElement, target: Element): void {
  if (rowsOf(root).some((r) => r.some((e) => e === target))) settle(root);
}

function move(root: HTMLElement, e: KeyboardEvent): void {
  if (e.ctrlKey || e.metaKey || e.altKey || e.shiftKey) return;
  const rows = rowsOf(root);
  const row = rows.findIndex((r) => r.includes(document.activeElement as HTMLElement));
  if (row < 0) return;
  const cell = rows[row].indexOf(document.activeElement as HTMLElement);
  const target: Record<string, [number, number]> = { ArrowDown: [row + 1, cell], ArrowUp: [row - 1, cell], Home: [0, cell], End: [rows.length - 1, cell], ArrowRight: [row, cell + 1], ArrowLeft: [row, cell - 1] };
  const to = target[e.key];
  if (!to) return;
  e.preventDefault();
  const next = rows[to[0]];
  next?.[Math.min(Math.max(0, to[1]), next.length - 1)].focus();
}
