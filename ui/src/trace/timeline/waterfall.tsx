import { useSignal, useSignalEffect } from '@preact/signals';
import type { VNode } from 'preact';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { rowHeights } from '../../shell/preferences';
import { t } from '../../shell/text';
import { arrow, choose, moveCursor, openActive, setCursor, toggle } from '../moves';
import { usePinned } from '../pinned';
import { Splitter, storedWidth } from '../splitter';
import type { TraceState } from '../state';
import { useMedia, useSize } from '../../shell/use-size';
import { makeAxis, type Axis } from './axis';
import { CursorLine, GridLines, Ruler } from './ruler';
import { Row, rowID, rowTitle, type RowContext, type RowProps } from './row';
import { areaHeight, rowAt, scrollToRow, windowAt, type List } from './rowwindow';
import { stickyRows } from './sticky';
import { useWheelZoom } from './wheel';
import css from './waterfall.module.css';

/** Width of the column with the names of the spans. */
export const nameWidth = storedWidth('tracing.trace.names', 404, 180, 900);

const extraRows = 8;

/** Milliseconds without a movement after which the rows rest. */
const scrollEndDelay = 200;

/** Width in pixels from which a character of a name may be: longer names are drawn so that they can be cut. */
const characterWidth = 6.4;

/** The spans as rows on a time axis. One tab stop; the cursor is the active descendant. */
export function Waterfall({ state }: { state: TraceState }) {
  const narrow = useMedia('(max-width: 640px)');
  const scroller = useRef<HTMLDivElement>(null);
  const size = useSize(scroller);
  const names = narrow ? 0 : Math.min(nameWidth.value.value, Math.max(180, size.width - 160));
  const timeWidth = Math.max(1, size.width - (narrow ? 24 : names));
  useLayoutEffect(() => { state.layout.value = { names, time: timeWidth }; }, [names, timeWidth]);
  const axis = useMemo(() => makeAxis(state.scale.value, state.zoom.value, timeWidth), [state.scale.value, state.zoom.value, timeWidth]);
  const rows = state.rows.value;
  const list: List = { count: rows.row.length, height: narrow ? 40 : rowHeights.value.trace, view: size.height };
  const active = state.rowIndex(state.active.value);
  useGoal(state, scroller, list);
  useAnchor(state, scroller, list);
  useWheelZoom(state, scroller, axis, names);
  return (
    <div class={css.waterfall} style={{ '--name-w': `${names}px` }}>
      <Ruler state={state} axis={axis} />
      <div
        ref={scroller} id="spans" class={css.scroller} role="treegrid" aria-label={t('Spans')} tabIndex={0} aria-rowcount={list.count} aria-colcount={2}
        aria-activedescendant={active >= 0 ? rowID(rows.row[active]) : undefined} onKeyDown={(e) => treeKey(state, e, list)} onFocus={() => focusRow(state)} onPointerDown={(e) => ask(state, e)} onClick={(e) => click(state, e)} onPointerOver={(e) => showTitle(state, e.target as Element)}
      >
        <Body state={state} axis={axis} list={list} scroller={scroller} narrow={narrow} names={narrow ? size.width : names} />
      </div>
      {!narrow && <Splitter width={nameWidth} label={t('Width of the name column')} direction={1} class={css.splitter} />}
    </div>
  );
}

/** Rows around the visible part, and what stays in view while they scroll. */
function Body({ state, axis, list, scroller, narrow, names }: { state: TraceState; axis: Axis; list: List; scroller: { current: HTMLDivElement | null }; narrow: boolean; names: number }) {
  const scroll = useSignal(0);
  const scrolling = useSignal(false);
  useLayoutEffect(() => {
    const element = scroller.current!;
    let timer = 0;
    const rest = (): void => { scrolling.value = false; };
    const follow = (): void => {
      clearTimeout(timer);
      timer = window.setTimeout(rest, scrollEndDelay);
      scroll.value = element.scrollTop;
      scrolling.value = true;
    };
    element.addEventListener('scroll', follow, { passive: true });
    return () => {
      clearTimeout(timer);
      element.removeEventListener('scroll', follow);
    };
  }, []);
  // Fewer rows or a smaller view can move the scroll position without an event. At the top nothing moves, and no layout is needed to know it.
  useLayoutEffect(() => { if (scroll.peek() > 0) scroll.value = scroller.current!.scrollTop; }, [list.count, list.view, list.height]);
  const context = useContext(state, axis, narrow, names);
  const seen = windowAt(list, scroll.value, extraRows);
  const [first, last] = [rowAt(list, scroll.value, 0), rowAt(list, scroll.value, list.view)];
  useLayoutEffect(() => { state.visible.value = [first, last]; }, [first, last]);
  const sticky = stickyRows(context.rows.level, list, scroll.value);
  const slots = Math.max(1, Math.ceil(list.view / list.height) + 2 * extraRows + 1);
  const cache = useRowCache(state, context);
  const copies = useRowCache(state, context, true);
  const elements: VNode<RowProps>[] = [];
  if (list.view > 0) for (let i = seen.first; i < seen.last; i++) elements.push(cache(i, seen.shift + i * list.height, i % slots));
  // While they scroll, elements get other rows but stay where they are in the document: moving them costs as much as drawing them. At rest, they are in the order of the rows.
  if (scrolling.value) elements.sort((a, b) => Number(a.key) - Number(b.key));
  const layer = useMemo(() => (
    <div class={css.layer} aria-hidden="true">
      <GridLines axis={axis} height={list.view} />
      <CursorLine state={state} axis={axis} scroller={scroller} height={list.view} />
    </div>
  ), [state, axis, list.view]);
  return (
    <>
      {layer}
      <div class={css.sticky}>
        {sticky.map((row, i) => copies(row, i * list.height, i))}
        {sticky.length > 0 && <div class={css.stickyEnd} style={{ top: `${sticky.length * list.height}px` }} />}
      </div>
      <div role="rowgroup" class={css.area} style={{ height: `${areaHeight(list)}px` }}>{elements}</div>
    </>
  );
}

/** Rows are rendered again only if they or the cursor moved, or if what they have in common changed. */
function useRowCache(state: TraceState, context: RowContext, copy?: boolean): (index: number, top: number, slot: number) => VNode<RowProps> {
  const cache = useRef<{ context: RowContext; rows: Map<number, VNode<RowProps>> }>({ context, rows: new Map() });
  if (cache.current.context !== context || cache.current.rows.size > 400) cache.current = { context, rows: new Map() };
  const { rows } = cache.current;
  const [chosen, cursor] = [state.selected.value, state.active.value];
  return (index, top, slot) => {
    let row = rows.get(index);
    const key = context.rows.row[index];
    const [selected, active] = [key >= 0 && key === chosen, key === cursor];
    if (!row || row.props.top !== top || row.key !== slot || row.props.selected !== selected || row.props.active !== active) {
      row = <Row key={slot} context={context} index={index} top={top} selected={selected} active={active} copy={copy} />;
      rows.set(index, row);
    }
    return row;
  };
}

function useContext(state: TraceState, axis: Axis, narrow: boolean, names: number): RowContext {
  const [model, rows, path, matches, chosen] = [state.model.value, state.rows.value, state.path.value, state.matches.value, state.chosen.value];
  const marks = state.marks.value;
  const [usual, colors] = [state.usual.value, state.colors.value];
  const pinned = usePinned(state);
  const levels = narrow ? 12 : Math.max(4, Math.floor((names * 0.5) / 12));
  const characters = Math.floor((names - 56) / characterWidth);
  return useMemo(
    () => ({ model, colors, rows, axis, path, usual, matches, marks, chosen, pinned, levels, characters, cut: (name: string) => state.cut(name) }),
    [model, colors, rows, axis, path, usual, matches, marks, chosen, pinned, levels, characters],
  );
}

/** Scrolls to a row when somebody asks for it. */
function useGoal(state: TraceState, scroller: { current: HTMLDivElement | null }, list: List): void {
  const latest = useRef(list);
  latest.current = list;
  const done = useRef<object | null>(null);
  const go = (): void => {
    const goal = state.goal.value;
    const element = scroller.current;
    if (!goal || !element || goal === done.current || latest.current.view === 0) return;
    const row = state.rowIndex(goal.key);
    if (row < 0) return;
    done.current = goal;
    const covered = Math.min(5, state.rows.value.level[row]) * latest.current.height;
    element.scrollTop = scrollToRow(latest.current, element.scrollTop, row, covered, goal.center);
  };
  useSignalEffect(() => {
    if (state.goal.value) queueMicrotask(go);
  });
  useLayoutEffect(go);
}

/** Keeps the first visible row in its place when rows appear or vanish above it in a growing trace. */
function useAnchor(state: TraceState, scroller: { current: HTMLDivElement | null }, list: List): void {
  const anchor = state.anchor;
  useLayoutEffect(() => {
    const element = scroller.current;
    if (anchor.row === null || !element) return;
    const row = state.rowIndex(anchor.row);
    if (row >= 0) element.scrollTop = row * list.height;
    anchor.row = null;
  }, [state.model.value]);
}

/** The cursor is on a row as soon as the rows have the focus. */
function focusRow(state: TraceState): void {
  if (state.active.value === null) state.active.value = state.rows.value.row[state.visible.value[0]] ?? null;
}

/** Asks for the span that a click will open, before the button of the mouse is released. A touch can begin to scroll instead. */
function ask(state: TraceState, e: PointerEvent): void {
  const target = e.target as Element;
  const index = target.closest<HTMLElement>('[data-row]')?.dataset.row;
  const key = state.rows.value.row[Number(index)] ?? -1;
  if (key < 0 || e.pointerType !== 'mouse' || e.button !== 0 || e.ctrlKey || e.metaKey || target.closest('[data-fold]') || inGutter(e)) return;
  state.ask(key);
  const end = new AbortController();
  const released = (): void => {
    end.abort();
    setTimeout(() => state.unask()); // after the click, if there is one
  };
  for (const type of ['pointerup', 'pointercancel']) addEventListener(type, released, end);
}

function click(state: TraceState, e: MouseEvent): void {
  const target = e.target as Element;
  const index = target.closest<HTMLElement>('[data-row]')?.dataset.row;
  if (index === undefined || getSelection()?.type === 'Range') return;
  const key = state.rows.value.row[Number(index)];
  document.getElementById('spans')?.focus({ preventScroll: true });
  state.active.value = key;
  if (e.ctrlKey || e.metaKey || inGutter(e)) choose(state, key);
  else if (target.closest('[data-fold]') || key < 0) toggle(state, key);
  else state.open(key, state.selected.value >= 0);
}

/** Sets the tooltip of the row under the pointer: rows without tooltips of their own scroll faster. */
function showTitle(state: TraceState, target: Element): void {
  const row = target.closest<HTMLElement>('[data-row]');
  const cell = row && [...row.children].find((c) => c.contains(target)) as HTMLElement | undefined;
  if (!cell) return;
  const context = { model: state.model.value, usual: state.usual.value };
  const title = rowTitle(context, state.rows.value.row[Number(row.dataset.row)], cell !== row.firstElementChild);
  if (cell.title !== title) cell.title = title;
}

/** Pixels at the left edge of a row where its check box is. */
const gutter = 18;

function inGutter(e: MouseEvent): boolean {
  return e.clientX - document.getElementById('spans')!.getBoundingClientRect().left < gutter;
}

function treeKey(state: TraceState, e: KeyboardEvent, list: List): void {
  if (e.target !== e.currentTarget || e.ctrlKey || e.metaKey || e.altKey) return;
  const { row } = state.rows.value;
  const page = Math.max(1, Math.floor(list.view / list.height) - 2);
  const moves: Record<string, () => void> = {
    ArrowRight: () => arrow(state, true), ArrowLeft: () => arrow(state, false), Enter: () => openActive(state),
    PageDown: () => moveCursor(state, page), PageUp: () => moveCursor(state, -page), Home: () => setCursor(state, row[0]), End: () => setCursor(state, row[row.length - 1]),
  };
  if (!moves[e.key] || row.length === 0) return;
  e.preventDefault();
  moves[e.key]();
}
