import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { classes } from '../../shell/controls';
import { Icon } from '../../shell/icons';
import { useKeys } from '../../shell/keys';
import { rowHeights } from '../../shell/preferences';
import { ColumnEdge, columnKeys, columnWidths, type ColumnWidths } from '../../shell/columns';
import { useRovingRows } from '../../shell/roving';
import { t } from '../../shell/text';
import { areaHeight, rowAt, scrollToRow, windowAt, type List } from '../timeline/rowwindow';
import { useMedia, useSize } from '../../shell/use-size';
import css from './grid.module.css';

/** A column: what is not `main` is left out on narrow screens. */
export interface Column {
  id: string;
  label: string;
  title?: string;
  /** Track of the CSS grid. */
  width: string;
  number?: boolean;
  main?: boolean;
  /** Cannot be sorted by. */
  fixed?: boolean;
}

/** Where a row is and what state it has. */
export interface RowState {
  /** Of a tree of groups: 1 or 2. */
  level?: number;
  expanded?: boolean;
  selected?: boolean;
  faint?: boolean;
}

interface GridProps {
  label: string;
  columns: Column[];
  count: number;
  /** Column, with a minus before it for descending order. */
  sort: string;
  onSort: (sort: string) => void;
  /** Content of row i, a cell for each column id. */
  cells: (i: number) => Record<string, ComponentChildren>;
  stateOf?: (i: number) => RowState;
  /** Row with the cursor, or -1. */
  active: number;
  onActive: (i: number) => void;
  /** Enter, Space or a click on a row. */
  onOpen: (i: number) => void;
  /** Right arrow (true) and left arrow. */
  onArrow?: (i: number, right: boolean) => void;
  /** A new object scrolls to the active row. */
  goal?: object | null;
  /** What stands below the head if there are no rows. */
  empty?: ComponentChildren;
}

const extraRows = 6;

/** Rows in columns, of which only the visible ones are drawn. The rows are one tab stop; the head is another. */
export function Grid(props: GridProps) {
  const { label, count, active, stateOf } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const size = useSize(scroller);
  const [scroll, setScroll] = useState(0);
  const narrow = useMedia('(max-width: 640px)');
  const widths = useMemo(() => columnWidths(`trace.${label}`), [label]);
  const columns = props.columns.filter((c) => c.main || !narrow);
  const list: List = { count, height: narrow ? 40 : rowHeights.value.table, view: Math.max(0, size.height - headHeight) };
  useGridKeys(props, list);
  useScroll(scroller, list, active, props.goal);
  const seen = windowAt(list, scroll, extraRows);
  const rows: ComponentChildren[] = [];
  if (size.height > 0) for (let i = seen.first; i < seen.last; i++) rows.push(<GridRow key={i} index={i} top={seen.shift + i * list.height} columns={columns} cells={props.cells(i)} state={stateOf?.(i) ?? {}} active={i === active} />);
  const tree = stateOf !== undefined && count > 0 && stateOf(0).level !== undefined;
  const click = (e: MouseEvent): void => {
    const row = (e.target as Element).closest<HTMLElement>('[data-index]')?.dataset.index;
    if (row === undefined || (e.target as Element).closest('button, a') || getSelection()?.type === 'Range') return;
    scroller.current!.focus({ preventScroll: true });
    props.onActive(Number(row));
    props.onOpen(Number(row));
  };
  return (
    <div
      ref={scroller} id="spans" class={css.scroller} role={tree ? 'treegrid' : 'grid'} aria-label={label} tabIndex={0} aria-rowcount={count + 1} aria-colcount={columns.length}
      aria-activedescendant={active >= 0 && active < count ? `grid-row-${active}` : undefined} style={{ '--columns': columns.map((c) => (widths.widths.value[c.id] ? `${widths.widths.value[c.id]}px` : c.width)).join(' ') }}
      onScroll={(e) => setScroll(e.currentTarget.scrollTop)} onFocus={(e) => { if (e.target === e.currentTarget && active < 0 && count > 0) props.onActive(rowAt(list, scroll, 0)); }} onClick={click}
    >
      <Head columns={columns} widths={widths} sort={props.sort} onSort={props.onSort} />
      {count === 0 && <div class={css.empty}>{props.empty}</div>}
      <div role="rowgroup" class={css.area} style={{ height: `${areaHeight(list)}px` }}>{rows}</div>
    </div>
  );
}

const headHeight = 28;

/** Names of the columns; a click sorts, again the other way round. */
function Head({ columns, widths, sort, onSort }: { columns: Column[]; widths: ColumnWidths; sort: string; onSort: (sort: string) => void }) {
  const head = useRef<HTMLDivElement>(null);
  useRovingRows(head);
  const by = sort.replace(/^-/, '');
  const down = sort.startsWith('-');
  return (
    <div ref={head} role="rowgroup" class={css.head}>
      <div role="row" class={css.columns} data-row aria-rowindex={1} onKeyDown={columnKeys(widths)}>
        {columns.map((c) => (
          <div key={c.id} role="columnheader" data-column={c.id} class={classes(css.title, c.number && css.number)} aria-sort={c.fixed ? undefined : by === c.id ? (down ? 'descending' : 'ascending') : 'none'} title={c.title}>
            {c.fixed ? <span>{c.label}</span> : (
              <button type="button" class={css.sort} onClick={() => onSort(by === c.id ? (down ? c.id : `-${c.id}`) : c.number ? `-${c.id}` : c.id)}>
                {c.label}{by === c.id && <Icon name={down ? 'down' : 'up'} size={12} />}
              </button>
            )}
            <ColumnEdge columns={widths} />
          </div>
        ))}
      </div>
    </div>
  );
}

function GridRow({ index, top, columns, cells, state, active }: { index: number; top: number; columns: Column[]; cells: Record<string, ComponentChildren>; state: RowState; active: boolean }) {
  return (
    <div
      role="row" id={`grid-row-${index}`} class={classes(css.row, css.columns, active && css.active, state.selected && css.selected, state.faint && css.faint, state.level === 1 && css.group)} style={{ top: `${top}px` }}
      data-index={index} aria-rowindex={index + 2} aria-level={state.level} aria-expanded={state.expanded} aria-selected={state.selected ?? false}
    >
      {columns.map((c, i) => (
        <div key={c.id} role="gridcell" class={classes(css.cell, c.number && css.number, i === 0 && state.level === 2 && css.inner)}>
          {i === 0 && state.expanded !== undefined && <span class={css.arrow} data-open={state.expanded} aria-hidden="true" />}
          {cells[c.id]}
        </div>
      ))}
    </div>
  );
}

function useGridKeys(p: GridProps, list: List): void {
  const go = (to: number): void => { if (p.count > 0) p.onActive(Math.min(p.count - 1, Math.max(0, to))); };
  const page = Math.max(1, Math.floor(list.view / list.height) - 1);
  const onRows = (run: () => void) => (): void | false => (document.activeElement?.closest('button, a, select, [role="tab"], [role="separator"], [role="menu"], [data-row]') ? false : run());
  const has = p.active >= 0 && p.active < p.count;
  useKeys(p.label, [
    { keys: ['j', 'ArrowDown'], label: t('Next row'), run: onRows(() => go(has ? p.active + 1 : 0)) },
    { keys: ['k', 'ArrowUp'], label: t('Previous row'), run: onRows(() => go(has ? p.active - 1 : p.count - 1)) },
    { keys: ['PageDown'], label: t('Next page'), run: onRows(() => go(p.active + page)) },
    { keys: ['PageUp'], label: t('Previous page'), run: onRows(() => go(p.active - page)) },
    { keys: ['Home'], label: t('First row'), run: onRows(() => go(0)) },
    { keys: ['End'], label: t('Last row'), run: onRows(() => go(p.count - 1)) },
    { keys: ['Enter'], label: t('Open'), run: onRows(() => { if (has) p.onOpen(p.active); }) },
    ...(p.onArrow ? [
      { keys: ['ArrowRight'], label: t('Unfold'), run: onRows(() => { if (has) p.onArrow!(p.active, true); }) },
      { keys: ['ArrowLeft'], label: t('Fold'), run: onRows(() => { if (has) p.onArrow!(p.active, false); }) },
    ] : []),
  ]);
}

/** Scrolls to the active row when the cursor moves or when a new goal asks for it. */
function useScroll(scroller: { current: HTMLDivElement | null }, list: List, active: number, goal: object | null | undefined): void {
  useLayoutEffect(() => {
    if (active < 0 || active >= list.count || list.view <= 0) return;
    const element = scroller.current!;
    element.scrollTop = scrollToRow(list, element.scrollTop, active, 0);
  }, [active, goal, list.view > 0]);
}
