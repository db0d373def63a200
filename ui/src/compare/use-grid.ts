import type { RefObject } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useSize, type Size } from '../shell/use-size';
import { scrollToRow, windowAt, type List, type Visible } from '../trace/timeline/rowwindow';

const extraRows = 6;

/** A scrolled list of rows, of which only the visible ones are drawn. */
export interface GridRows {
  scroller: RefObject<HTMLDivElement | null>;
  size: Size;
  list: List;
  seen: Visible;
  /** Index of the active row, -1 if there are no rows. */
  current: number;
  activate: (row: number) => void;
  onScroll: (e: Event) => void;
  /** For the grid, which is one tab stop: arrow keys, j and k move, Enter opens. */
  onKeyDown: (e: KeyboardEvent) => void;
}

/** State of a list of `count` rows with a height in pixels. */
export function useGrid(count: number, height: number, open: (row: number) => void): GridRows {
  const scroller = useRef<HTMLDivElement>(null);
  const size = useSize(scroller);
  const [scroll, setScroll] = useState(0);
  const [at, setAt] = useState(0);
  const list: List = { count, height, view: size.height };
  const current = Math.min(at, count - 1);
  // Fewer rows or another size can move the scroll position without an event.
  useLayoutEffect(() => { setScroll(scroller.current!.scrollTop); }, [count, size.height]);
  const go = (index: number): void => {
    const next = Math.max(0, Math.min(count - 1, index));
    setAt(next);
    scroller.current!.scrollTop = scrollToRow(list, scroller.current!.scrollTop, next, 0);
  };
  const page = Math.max(1, Math.floor(list.view / height) - 1);
  const moves: Record<string, () => void> = {
    ArrowDown: () => go(current + 1), j: () => go(current + 1), ArrowUp: () => go(current - 1), k: () => go(current - 1), PageDown: () => go(current + page), PageUp: () => go(current - page),
    Home: () => go(0), End: () => go(count - 1), Enter: () => open(current),
  };
  return {
    scroller, size, list, seen: windowAt(list, scroll, extraRows), current, activate: setAt,
    onScroll: (e) => setScroll((e.currentTarget as HTMLElement).scrollTop),
    onKeyDown: (e) => {
      if (e.target !== e.currentTarget || e.ctrlKey || e.metaKey || e.altKey || !moves[e.key]) return;
      e.preventDefault();
      moves[e.key]();
    },
  };
}
