import { signal, type Signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { dragHandle } from './drag';
import { t } from './text';
import css from './columns.module.css';

/** Widths in pixels of the columns that the user has changed, by id of the column. */
export interface ColumnWidths {
  widths: Signal<Readonly<Record<string, number>>>;
  set: (column: string, width: number | null) => void;
}

const [least, most, step] = [48, 900, 16];

/** Column widths of a table, kept in the local storage where it is allowed. */
export function columnWidths(table: string): ColumnWidths {
  const key = `tracing.columns.${table}`;
  const widths = signal<Readonly<Record<string, number>>>({});
  try {
    const stored = Object.entries(JSON.parse(localStorage.getItem(key) ?? '{}') as Record<string, unknown>);
    widths.value = Object.fromEntries(stored.filter((e): e is [string, number] => typeof e[1] === 'number' && e[1] >= least && e[1] <= most));
  } catch {
    // Without storage, widths last as long as the page.
  }
  const set = (column: string, width: number | null): void => {
    const { [column]: _, ...others } = widths.peek();
    widths.value = width === null ? others : { ...others, [column]: Math.round(Math.min(most, Math.max(least, width))) };
    try {
      if (Object.keys(widths.value).length > 0) localStorage.setItem(key, JSON.stringify(widths.value));
      else localStorage.removeItem(key);
    } catch {
      // As above.
    }
  };
  return { widths, set };
}

/** Attributes of the head of a column whose width can be changed. */
export function columnHead({ widths }: ColumnWidths, column: string): { 'data-column': string; style?: { width: string } } {
  const width = widths.value[column];
  return { 'data-column': column, ...(width === undefined ? {} : { style: { width: `${width}px` } }) };
}

const headOf = (e: Event): HTMLElement | null => (e.target as Element).closest<HTMLElement>('[data-column]');

/** For the row of the heads: Shift with an arrow key changes the width of the column with the focus. */
export function columnKeys(columns: ColumnWidths): (e: KeyboardEvent) => void {
  return (e) => {
    const by = e.key === 'ArrowRight' ? step : e.key === 'ArrowLeft' ? -step : 0;
    const head = headOf(e);
    if (!by || !e.shiftKey || !head) return;
    e.preventDefault();
    e.stopPropagation();
    columns.set(head.dataset.column!, head.getBoundingClientRect().width + by);
  };
}

/** The right edge of the head of a column: dragging it changes the width, a double click resets it. It takes the focus if nothing else in the head can. */
export function ColumnEdge({ columns }: { columns: ColumnWidths }) {
  const own = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    const head = own.current!.parentElement!;
    own.current!.ariaValueNow = String(Math.round(head.offsetWidth));
    own.current!.tabIndex = head.querySelector('button') ? -1 : 0;
  });
  const drag = (e: PointerEvent): void => {
    const head = headOf(e)!;
    const [from, width] = [e.clientX, head.getBoundingClientRect().width];
    dragHandle(e, (x) => columns.set(head.dataset.column!, width + x - from));
  };
  return <span ref={own} class={css.edge} role="separator" aria-orientation="vertical" aria-label={t('Width')} title={t('Drag, or press Shift with an arrow key, to change the width; double-click to reset it')} onPointerDown={drag} onDblClick={(e) => columns.set(headOf(e)!.dataset.column!, null)} />;
}
