import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { duration } from '../../shell/format';
import { foldLevel, setZoom } from '../moves';
import type { TraceState } from '../state';
import { fractionAt, leastZoom, pixel, type Axis } from './axis';
import { tickLabel, ticks } from './ticks';
import { dragRange } from './drag';
import { limit } from './zoom';
import css from './ruler.module.css';

/** Head of the waterfall: names of the columns, and the time axis. A drag on the axis zooms. */
export function Ruler({ state, axis }: { state: TraceState; axis: Axis }) {
  const area = useRef<HTMLDivElement>(null);
  const mark = useRef<HTMLDivElement>(null);
  const drag = (e: PointerEvent): void => {
    const model = state.model.value;
    dragRange(e, area.current!, mark.current!, (a, b) => setZoom(state, limit(fractionAt(model, axis, a), fractionAt(model, axis, b), leastZoom(model))));
  };
  return (
    <div class={css.ruler} role="row" aria-rowindex={1}>
      <div class={css.head} role="columnheader">
        <span class={css.grow}>Service and operation</span>
        <span class={css.fold}>
          Fold
          <button type="button" tabIndex={-1} class={css.key} title="Fold one level more" aria-label="Fold one level more" onClick={() => foldLevel(state, -1)}><kbd>[</kbd></button>
          <button type="button" tabIndex={-1} class={css.key} title="Unfold one level more" aria-label="Unfold one level more" onClick={() => foldLevel(state, 1)}><kbd>]</kbd></button>
        </span>
      </div>
      <div ref={area} class={css.axis} role="columnheader" aria-label="Time" title="Drag to zoom" onPointerDown={drag} onDblClick={() => setZoom(state, [0, 1])}>
        {ticks(axis.from, axis.to, axis.width).map((t) => {
          const x = pixel(axis, t.at);
          return x < axis.width - 24 && <span key={t.at} class={css.tick} style={{ left: `${Math.round(x)}px` }}>{t.label}</span>;
        })}
        <div ref={mark} class={css.range} hidden />
      </div>
    </div>
  );
}

/** Vertical lines at the ticks, behind the rows. */
export function GridLines({ axis, height }: { state: TraceState; axis: Axis; height: number }) {
  return (
    <>
      {ticks(axis.from, axis.to, axis.width).map((t) => t.at > axis.from && <div key={t.at} class={css.line} style={{ left: `calc(var(--time-left) + ${Math.round(pixel(axis, t.at))}px)`, height: `${height}px` }} />)}
    </>
  );
}

/** The line under the pointer, with its time. It moves without rendering. */
export function CursorLine({ state, axis, scroller, height }: { state: TraceState; axis: Axis; scroller: RefObject<HTMLElement | null>; height: number }) {
  const line = useRef<HTMLDivElement>(null);
  const latest = useRef(axis);
  latest.current = axis;
  useEffect(() => {
    const element = scroller.current!;
    const move = (e: PointerEvent): void => {
      const box = element.getBoundingClientRect();
      const left = parseFloat(getComputedStyle(line.current!).getPropertyValue('--time-left')) || 0;
      const x = e.clientX - box.left - left;
      const now = latest.current;
      line.current!.hidden = e.pointerType === 'touch' || x < 0 || x > now.width;
      line.current!.style.transform = `translateX(${Math.round(x + left)}px)`;
      const time = now.from + x / now.scale;
      (line.current!.firstChild as HTMLElement).textContent = time > 0 ? tickLabel(time, (now.to - now.from) / 1000) : duration(time);
      line.current!.dataset.side = x > now.width - 80 ? 'left' : 'right';
    };
    const leave = (): void => { line.current!.hidden = true; };
    element.addEventListener('pointermove', move, { passive: true });
    element.addEventListener('pointerleave', leave);
    return () => {
      element.removeEventListener('pointermove', move);
      element.removeEventListener('pointerleave', leave);
    };
  }, [state]);
  return <div ref={line} class={css.cursor} style={{ height: `${height}px` }} hidden><span /></div>;
}
