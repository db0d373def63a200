// The last searches, in this browser only.

const key = 'tracing.searches';

/** Maximum number of kept searches. */
export const maxHistory = 50;

/** The last searches, newest first. */
export function readHistory(storage: Pick<Storage, 'getItem'> = localStorage): string[] {
  try {
    const list: unknown = JSON.parse(storage.getItem(key) ?? '[]');
    return Array.isArray(list) ? list.filter((x): x is string => typeof x === 'string').slice(0, maxHistory) : [];
  } catch {
    return []; // Storage may be forbidden.
  }
}

/** Remembers a search as the newest one. */
export function remember(text: string, storage: Pick<Storage, 'getItem' | 'setItem'> = localStorage): void {
  if (!text) return;
  const list = [text, ...readHistory(storage).filter((x) => x !== text)].slice(0, maxHistory);
  try {
    storage.setItem(key, JSON.stringify(list));
  } catch {
    // A full or forbidden storage only loses the history.
  }
}
