// The language of the page: the one that the user chose, otherwise that of the browser. Its texts are loaded before any module that uses texts
// runs, because modules keep texts. So another choice loads the page again.

import german from '../../texts/de.json?url';
import type { Catalog } from './text';

/** Languages by their tags, with their own names. */
export const languages = { en: 'English', de: 'Deutsch' };

/** Tag of a language. */
export type Language = keyof typeof languages;

const key = 'tracing.language';

/** Milliseconds that the page waits for its texts. */
const timeout = 5000;

/** Texts of the language of the page, or null for English. Workers and unit tests begin with English. */
export const translations = typeof document !== 'undefined' && wantsGerman() ? await load(german) : null;

/** Language of the page. */
export const language: Language = translations ? 'de' : 'en';

function wantsGerman(): boolean {
  try {
    const choice = localStorage.getItem(key);
    if (choice) return choice === 'de';
  } catch {
    // Without storage, the browser decides.
  }
  return /^de\b/.test(navigator.language);
}

/** Without its texts, which can be missing for a moment while the server is updated, the page is English. */
async function load(url: string): Promise<Catalog | null> {
  try {
    const response = await fetch(new URL(url, import.meta.url), { signal: AbortSignal.timeout(timeout) });
    if (!response.ok) return null;
    const catalog = (await response.json()) as Catalog;
    document.documentElement.lang = catalog.language;
    return catalog;
  } catch {
    return null;
  }
}

/** Stores the choice of the user, and loads the page again if it has another language. */
export function chooseLanguage(choice: Language): void {
  try {
    localStorage.setItem(key, choice);
    if (choice !== language) location.reload();
  } catch {
    // Without storage, no choice can be kept.
  }
}
