import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { panBy, zoomAround } from '../moves';
import type { TraceState } from '../state';
import { fractionAt, type Axis } from './axis';

/** The wheel with Ctrl zooms around the pointer; sideways (or with Shift) it moves the visible part of a zoomed trace. */
export function useWheelZoom(state: TraceState, element: RefObject<HTMLElement | null>, axis: Axis, left: number): void {
  const latest = useRef({ axis, left });
  latest.current = { axis, left };
  useEffect(() => {
    const wheel = (e: WheelEvent): void => {
      const sideways = e.shiftKey ? e.deltaY : e.deltaX;
      const { axis: now, left: begin } = latest.current;
      if (e.ctrlKey || e.metaKey) {
        e.preventDefault();
        const x = e.clientX - element.current!.getBoundingClientRect().left - begin;
        zoomAround(state, Math.exp(Math.sign(e.deltaY) * Math.min(Math.abs(e.deltaY), 100) * 0.004), fractionAt(now, x));
      } else if (state.zoomed.value && Math.abs(sideways) > (e.shiftKey ? 0 : Math.abs(e.deltaY))) {
        e.preventDefault();
        panBy(state, sideways / now.width);
      }
    };
    element.current!.addEventListener('wheel', wheel, { passive: false });
    return () => element.current?.removeEventListener('wheel', wheel);
  }, []);
}
