import type { ComponentChildren, RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { classes } from '../../shell/controls';
import { duration } from '../../shell/format';
import { t, Text } from '../../shell/text';
import { foldLevel, setZoom } from '../moves';
import type { TraceState } from '../state';
import { fractionAt, leastZoom, pixel, timeAt, type Axis } from './axis';
import { AxisTexts, Breaks } from './breaks';
import { marks, tickLabel } from './ticks';
import { dragRange } from '../../shell/drag';
import { limit } from './zoom';
import css from './ruler.module.css';

/** The time axis. A drag zooms. */
export function TimeAxis({ state, axis, class: extra, children }: { state: TraceState; axis: Axis; class?: string; children?: ComponentChildren }) {
  const area = useRef<HTMLDivElement>(null);
  const mark = useRef<HTMLDivElement>(null);
  const drag = (e: PointerEvent): void => {
    dragRange(e, area.current!, mark.current!, (a, b) => setZoom(state, limit(fractionAt(axis, a), fractionAt(axis, b), leastZoom(axis.times))));
  };
  return (
    <div ref={area} class={classes(css.axis, extra)} title={t('Drag to zoom')} onPointerDown={drag} onDblClick={() => setZoom(state, [0, 1])}>
      <AxisTexts axis={axis} tickClass={css.tick} />
      <div ref={mark} class={css.range} hidden />
      {children}
    </div>
  );
}

/** Head of the waterfall: names of the columns, and the time axis. */
export function Ruler({ state, axis }: { state: TraceState; axis: Axis }) {
  return (
    <div class={css.ruler}>
      <div class={css.head}>
        <span class={css.grow}>{t('Service and operation')}</span>
        <span class={css.fold}><Text of="Fold{kbd}{kbd2}" kbd={<button type="button" class={css.key} title={t('Fold one more level')} aria-label={t('Fold one more level')} onClick={() => foldLevel(state, -1)}><kbd>[</kbd></button>} kbd2={<button type="button" class={css.key} title={t('Unfold one more level')} aria-label={t('Unfold one more level')} onClick={() => foldLevel(state, 1)}><kbd>]</kbd></button>} /></span>
      </div>
      <TimeAxis state={state} axis={axis}><div ref={state.cursorTime as RefObject<HTMLDivElement>} class={css.cursorTime} aria-hidden="true" hidden /></TimeAxis>
    </div>
  );
}

/** Vertical lines at the ticks, and bands at the breaks, behind the rows. */
export function GridLines({ axis, height }: { axis: Axis; height: number }) {
  return (
    <>
      <Breaks axis={axis} style={{ left: 'var(--time-left)', height: `${height}px` }} />
      {marks(axis).ticks.map((item) => item.at > axis.from && <div key={item.at} class={css.line} style={{ left: `calc(var(--time-left) + ${Math.round(pixel(axis, item.at))}px)`, height: `${height}px` }} />)}
    </>
  );
}

/** The line under the pointer; its time stands in the ruler. It moves without rendering. */
export function CursorLine({ state, axis, scroller, height }: { state: TraceState; axis: Axis; scroller: RefObject<HTMLElement | null>; height: number }) {
  const line = useRef<HTMLDivElement>(null);
  const pointer = useRef<number | null>(null);
  const show = (): void => showCursor(line.current!, state.cursorTime.current, axis, pointer.current);
  const latest = useRef(show);
  latest.current = show;
  useEffect(() => {
    const element = scroller.current!;
    const move = (e: PointerEvent): void => {
      const left = parseFloat(getComputedStyle(line.current!).left) || 0;
      pointer.current = e.pointerType === 'touch' ? null : e.clientX - element.getBoundingClientRect().left - left;
      latest.current();
    };
    const leave = (): void => {
      pointer.current = null;
      latest.current();
    };
    element.addEventListener('pointermove', move, { passive: true });
    element.addEventListener('pointerleave', leave);
    return () => {
      element.removeEventListener('pointermove', move);
      element.removeEventListener('pointerleave', leave);
    };
  }, [state]);
  useEffect(show, [axis]);
  return <div ref={line} class={css.cursor} style={{ height: `${height}px` }} hidden />;
}

/** Moves the line to `x` pixels from the start of the axis, or hides it. */
function showCursor(line: HTMLElement, label: HTMLElement | null, axis: Axis, x: number | null): void {
  const hidden = x === null || x < 0 || x > axis.width;
  line.hidden = hidden;
  if (label) label.hidden = hidden;
  if (hidden) return;
  line.style.transform = `translateX(${Math.round(x)}px)`;
  if (!label) return;
  const time = timeAt(axis, x);
  label.textContent = time > 0 ? tickLabel(time, axis.width / axis.scale / 1000) : duration(time);
  label.style.transform = `translateX(${Math.round(Math.min(x, axis.width - 64))}px)`;
}
