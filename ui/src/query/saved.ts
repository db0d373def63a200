// Named searches, in this browser only; links and files carry them to others.

import { signal } from '@preact/signals';
import { format, type View } from '../shell/url';

/** A named search: path and query of the page, without the base path. */
export interface SavedSearch {
  name: string;
  url: string;
}

const key = 'tracing.saved';

/** Limits of what is kept, and of links that carry all searches. */
export const maxSaved = 200;
export const maxName = 100;
export const maxLink = 8000;

type Store = Pick<Storage, 'getItem' | 'setItem'>;

/** The searches in a text of JSON; what is not one is left out. */
export function parseSaved(text: string): SavedSearch[] {
  try {
    const all: unknown = JSON.parse(text);
    return Array.isArray(all) ? all.filter(isSaved).map(({ name, url }) => ({ name: name.trim(), url })).slice(0, maxSaved) : [];
  } catch {
    return [];
  }
}

/** Only searches are opened: a link from elsewhere must not lead to another page. */
function isSaved(x: unknown): x is SavedSearch {
  const s = x as Partial<SavedSearch> | null;
  return typeof s?.name === 'string' && s.name.trim() !== '' && s.name.length <= maxName && typeof s.url === 'string' && /^\/search(\?|$)/.test(s.url);
}

function read(storage?: Store): SavedSearch[] {
  try {
    return parseSaved((storage ?? localStorage).getItem(key) ?? '[]');
  } catch {
    return []; // Storage may be forbidden.
  }
}

/** The saved searches, by name. */
export const savedSearches = signal<SavedSearch[]>(read());

/** Replaces all saved searches. */
export function replaceSaved(all: SavedSearch[], storage?: Store): void {
  savedSearches.value = [...all].sort((a, b) => a.name.localeCompare(b.name)).slice(0, maxSaved);
  try {
    (storage ?? localStorage).setItem(key, JSON.stringify(savedSearches.value));
  } catch {
    // Without storage, the list lasts as long as the page.
  }
}

/** The search of a view: query, range, tab, columns and grouping, without the looks of the page. */
export function searchOf(v: View): string {
  return format({ ...v, route: { page: 'explore' }, theme: '', zone: '', embed: false, embedOptions: {}, limit: 0, saved: '' }, '');
}

/** Adds a search, or replaces the one with its name. */
export function save(all: SavedSearch[], added: SavedSearch): SavedSearch[] {
  return [...all.filter((s) => s.name !== added.name), added];
}

/** Adds searches of others. Equal ones are there already; a name that is taken gets a number. */
export function merge(all: SavedSearch[], added: SavedSearch[]): { all: SavedSearch[]; added: number } {
  const out = [...all];
  for (const s of added) {
    if (out.some((o) => o.url === s.url && o.name === s.name)) continue;
    let name = s.name;
    for (let n = 2; out.some((o) => o.name === name); n++) name = `${s.name} (${n})`;
    out.push({ name, url: s.url });
  }
  return { all: out.slice(0, maxSaved), added: Math.min(out.length, maxSaved) - all.length };
}

/** Value of the parameter `saved` of a link that carries searches. */
export function encodeSaved(all: SavedSearch[]): string {
  const text = String.fromCharCode(...new TextEncoder().encode(JSON.stringify(all)));
  return btoa(text).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
}

/** The searches of a link; none if it was damaged. */
export function decodeSaved(value: string): SavedSearch[] {
  try {
    const text = atob(value.replace(/-/g, '+').replace(/_/g, '/'));
    return parseSaved(new TextDecoder().decode(Uint8Array.from(text, (c) => c.charCodeAt(0))));
  } catch {
    return [];
  }
}
