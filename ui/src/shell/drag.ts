// Dragging: a range on an element, or a handle.

/** Follows a drag that begins with the event, shows it with `mark`, and reports pixels from the left edge. A click reports nothing. */
export function dragRange(e: PointerEvent, area: HTMLElement, mark: HTMLElement, done: (from: number, to: number) => void): void {
  if (e.button !== 0) return;
  e.preventDefault();
  const box = area.getBoundingClientRect();
  const at = (m: PointerEvent): number => Math.min(box.width, Math.max(0, m.clientX - box.left));
  const start = at(e);
  let end = start;
  area.setPointerCapture(e.pointerId);
  const move = (m: PointerEvent): void => {
    end = at(m);
    mark.hidden = Math.abs(end - start) < 3;
    mark.style.left = `${Math.min(start, end)}px`;
    mark.style.width = `${Math.abs(end - start)}px`;
  };
  const stop = (m: PointerEvent): void => {
    area.removeEventListener('pointermove', move);
    area.removeEventListener('pointerup', stop);
    area.removeEventListener('pointercancel', stop);
    const far = !mark.hidden;
    mark.hidden = true;
    if (far && m.type === 'pointerup') done(Math.min(start, end), Math.max(start, end));
  };
  area.addEventListener('pointermove', move);
  area.addEventListener('pointerup', stop);
  area.addEventListener('pointercancel', stop);
}

/** Follows a drag of the element of an event, and reports the position of the pointer in pixels. */
export function dragHandle(e: PointerEvent, report: (x: number) => void): void {
  if (e.button !== 0) return;
  e.preventDefault();
  const handle = e.currentTarget as HTMLElement;
  handle.setPointerCapture(e.pointerId);
  const move = (m: PointerEvent): void => report(m.clientX);
  handle.addEventListener('pointermove', move);
  handle.addEventListener('lostpointercapture', () => handle.removeEventListener('pointermove', move), { once: true });
}
