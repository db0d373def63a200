import { signal } from '@preact/signals';

/** A trace that the user opened. */
export interface RecentTrace {
  id: string;
  /** Service and operation of the root. */
  name: string;
}

const key = 'tracing.recent';
const max = 10;

function read(): RecentTrace[] {
  try {
    const list: unknown = JSON.parse(localStorage.getItem(key) ?? '[]');
    return Array.isArray(list) ? list.filter((x): x is RecentTrace => typeof x?.id === 'string' && typeof x?.name === 'string').slice(0, max) : [];
  } catch {
    return [];
  }
}

/** Traces that the user opened in this browser, newest first. */
export const recentTraces = signal<RecentTrace[]>(read());

/** Remembers a trace for the palette. */
export function rememberTrace(id: string, name: string): void {
  recentTraces.value = [{ id, name }, ...recentTraces.value.filter((t) => t.id !== id)].slice(0, max);
  try {
    localStorage.setItem(key, JSON.stringify(recentTraces.value));
  } catch {
    // Without storage, the list lasts as long as the page.
  }
}
