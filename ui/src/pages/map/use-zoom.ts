import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useSize } from '../../shell/use-size';

/** Which part of a drawing is seen: its place x, y is at px = k * x + dx. */
export interface Zoom {
  k: number;
  dx: number;
  dy: number;
}

const [least, most] = [0.1, 2.5];
/** Smallest scale of a drawing that is fitted: names stay readable. */
const fitLeast = 0.6;

/** What the drawing is fitted to. */
export interface Fit {
  width: number;
  height: number;
  /** Place that is in the middle if not everything fits. */
  center: [number, number];
  /** The drawing is fitted again when this changes. */
  key: string;
}

/** Pan and zoom of a drawing in a box: by wheel, by dragging, and by the returned functions. */
export function useZoom(box: RefObject<HTMLElement | null>, fit: Fit): { zoom: Zoom; dragged: () => boolean; by: (factor: number) => void; pan: (x: number, y: number) => void; reset: () => void; reveal: (x: number, y: number) => void } {
  const size = useSize(box);
  const [zoom, setZoom] = useState<Zoom>({ k: 1, dx: 0, dy: 0 });
  const moved = useRef(false);
  const reset = (): void => setZoom(fitted(fit, size.width, size.height));
  useLayoutEffect(reset, [fit.key, size.width > 0]);
  const at = (factor: number, x: number, y: number): void => setZoom((z) => scaled(z, factor, x, y));
  const pan = (x: number, y: number): void => setZoom((z) => ({ ...z, dx: z.dx + x, dy: z.dy + y }));
  useEffect(() => {
    const element = box.current!;
    const wheel = (e: WheelEvent): void => {
      e.preventDefault();
      const r = element.getBoundingClientRect();
      at(Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.0015)), e.clientX - r.left, e.clientY - r.top);
    };
    const stopDrag = watchDrag(element, moved, pan);
    element.addEventListener('wheel', wheel, { passive: false });
    return () => {
      element.removeEventListener('wheel', wheel);
      stopDrag();
    };
  }, []);
  const reveal = (x: number, y: number): void => setZoom((z) => revealed(z, x, y, size.width, size.height));
  return { zoom, dragged: () => moved.current, by: (f) => at(f, size.width / 2, size.height / 2), pan, reset, reveal };
}

/** The scale at which everything is seen, or else its middle. */
export function fitted(fit: Fit, width: number, height: number): Zoom {
  const k = Math.max(fitLeast, Math.min(1, width / Math.max(fit.width, 1), height / Math.max(fit.height, 1)));
  const place = (have: number, want: number, center: number): number => (want * k <= have ? (have - want * k) / 2 : Math.min(0, Math.max(have - want * k, have / 2 - center * k)));
  return { k, dx: place(width, fit.width, fit.center[0]), dy: place(height, fit.height, fit.center[1]) };
}

function scaled(z: Zoom, factor: number, x: number, y: number): Zoom {
  const k = Math.min(most, Math.max(least, z.k * factor));
  return { k, dx: x - ((x - z.dx) * k) / z.k, dy: y - ((y - z.dy) * k) / z.k };
}

/** Moves a place into the box, with some space around it. */
function revealed(z: Zoom, x: number, y: number, width: number, height: number): Zoom {
  const margin = 80;
  const shift = (at: number, have: number): number => (at < margin ? margin - at : at > have - margin ? have - margin - at : 0);
  return { ...z, dx: z.dx + shift(z.k * x + z.dx, width), dy: z.dy + shift(z.k * y + z.dy, height) };
}

function watchDrag(element: HTMLElement, moved: { current: boolean }, pan: (x: number, y: number) => void): () => void {
  let from: { x: number; y: number } | null = null;
  const down = (e: PointerEvent): void => {
    if (e.button !== 0) return;
    moved.current = false;
    from = { x: e.clientX, y: e.clientY };
  };
  const move = (e: PointerEvent): void => {
    if (!from) return;
    if (!moved.current && Math.hypot(e.clientX - from.x, e.clientY - from.y) < 4) return;
    if (!moved.current) element.setPointerCapture(e.pointerId);
    moved.current = true;
    pan(e.clientX - from.x, e.clientY - from.y);
    from = { x: e.clientX, y: e.clientY };
  };
  const up = (): void => { from = null; };
  element.addEventListener('pointerdown', down);
  element.addEventListener('pointermove', move);
  element.addEventListener('pointerup', up);
  element.addEventListener('pointercancel', up);
  return () => {
    element.removeEventListener('pointerdown', down);
    element.removeEventListener('pointermove', move);
    element.removeEventListener('pointerup', up);
    element.removeEventListener('pointercancel', up);
  };
}
