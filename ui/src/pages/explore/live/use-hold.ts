import { useEffect, useState } from 'preact/hooks';

/** Pixels that the page may be scrolled until the list waits. */
const slack = 40;

/** What waits while the user looks at it: the list under the pointer, with the focus, or scrolled; the heatmap under the pointer; everything while paused. */
export function useHold(content: { current: HTMLElement | null }, paused: boolean) {
  const [overRows, setOverRows] = useState(false);
  const [overHeat, setOverHeat] = useState(false);
  const [focused, setFocused] = useState(false);
  const [scrolled, setScrolled] = useState(false);
  useEffect(() => {
    // On a small screen, an element around the content scrolls.
    const scroll = (e: Event): void => { if ((e.target as Node).contains(content.current)) setScrolled((e.target as Element).scrollTop > slack); };
    document.addEventListener('scroll', scroll, { capture: true, passive: true });
    return () => document.removeEventListener('scroll', scroll, { capture: true });
  }, []);
  return {
    rows: paused || overRows || focused || scrolled,
    heat: paused || overHeat,
    overRows: {
      ...over(setOverRows),
      onFocusIn: (e: FocusEvent) => setFocused(!!(e.target as Element).closest('[role=row]')),
      onFocusOut: () => setFocused(false),
    },
    overHeat: over(setOverHeat),
    /** Shows what waits, although the pointer may still be there. */
    release: () => {
      setOverRows(false);
      setFocused(false);
      for (let e: HTMLElement | null = content.current; e; e = e.parentElement) e.scrollTop = 0;
    },
  };
}

/** A finger does not hover. */
function over(set: (over: boolean) => void) {
  return {
    onPointerEnter: (e: PointerEvent) => { if (e.pointerType === 'mouse') set(true); },
    onPointerLeave: () => set(false),
  };
}
