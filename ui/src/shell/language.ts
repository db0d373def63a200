// The language of the page: the one that the user chose, otherwise that of the browser. Its texts are loaded before any module that uses texts
// runs, because modules keep texts. So another choice loads the page again.

import german from '../../texts/de.json?url';
import type { Catalogue } from './text';

/** Languages by their tags, with their own names. */
export const languages = { en: 'English', de: 'Deutsch' };

/** Tag of a language. */
export type Language = keyof typeof languages;

const key = 'tracing.language';

/** Language of the page. Workers and unit tests begin with English. */
export const language: Language = typeof document === 'undefined' ? 'en' : chosen() ?? (/^de\b/.test(navigator.language) ? 'de' : 'en');

/** Texts of the language, or null for English. */
export const translations = language === 'de' ? await load(german) : null;

function chosen(): Language | null {
  try {
    const text = localStorage.getItem(key);
    return text && text in languages ? (text as Language) : null;
  } catch {
    return null;
  }
}

/** Without its texts, which can be missing for a moment while the server is updated, the page is English. */
async function load(url: string): Promise<Catalogue | null> {
  try {
    const catalogue = (await (await fetch(new URL(url, import.meta.url))).json()) as Catalogue;
    document.documentElement.lang = catalogue.language;
    return catalogue;
  } catch {
    return null;
  }
}

/** Stores the choice of the user, and loads the page again if it has another language. */
export function chooseLanguage(choice: Language): void {
  try {
    localStorage.setItem(key, choice);
  } catch {
    // Without storage, the browser decides.
  }
  if (choice !== language) location.reload();
}
