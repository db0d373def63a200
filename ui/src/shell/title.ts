import { effect, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

/** Title of the page, without the name of the program. */
export const title = signal('');

/** Sets the title of the document: the most specific part first, "checkout, POST /pay". */
export function useTitle(text: string): void {
  useEffect(() => { title.value = text; }, [text]);
}

/** Keeps the title of the document up to date. Returns a function that stops it. */
export function applyTitle(): () => void {
  return effect(() => { document.title = title.value ? `${title.value} · tracing` : 'tracing'; });
}
