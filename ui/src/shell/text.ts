// The texts of the UI. The English text is the key of its translation, so that a reader of the source
// sees what users see. It does not import Preact, because workers need texts, too.

import type { ComponentChildren } from 'preact';
import { translations } from './language';

/** Values for the placeholders of a text, by name. */
export type Values = Record<string, string | number>;

/** Translations of one language: by English text or, for texts with a number, the forms by plural category. */
export interface Catalog {
  /** BCP 47 tag of the language, for plural categories. */
  language: string;
  texts: Record<string, string | Partial<Record<Intl.LDMLPluralRule, string>>>;
}

const english: Catalog = { language: 'en', texts: {} };
let catalog = english;
let plurals: Intl.PluralRules | undefined;

/** Signs in numbers: between digits, and between groups of digits. */
export let decimal = '.', thousands = ',';

/** Chooses a language; null is English. The page begins with the texts that `language.ts` loads; a worker gets them from its page. */
export function setCatalog(chosen: Catalog | null): void {
  catalog = chosen ?? english;
  plurals = undefined;
  [decimal, thousands] = ['.', ','];
  if (!chosen) return; // browsers load their data of languages at the first use, which takes longer than all other modules
  plurals = new Intl.PluralRules(chosen.language);
  [, , thousands, , , , decimal] = (12345.6).toLocaleString(chosen.language);
}

setCatalog(translations);

/** Returns a text with values instead of its placeholders: `t('Sort by {key}', { key: 'time' })`. */
export function t(text: string, values?: Values): string {
  const found = catalog.texts[text];
  return fill(typeof found === 'string' ? found : text, values);
}

/**
 * Returns a text for a number, in the singular or the plural: `tn(spans, '{n} span', '{n} spans', { n: count(spans) })`.
 * Without a value for it, `{n}` is the number. The plural is the key of the translation.
 */
export function tn(n: number, one: string, other: string, values?: Values): string {
  return fill(form(n, one, other), { n, ...values });
}

function form(n: number, one: string, other: string): string {
  const found = catalog.texts[other];
  if (typeof found === 'string') return found;
  return (plurals && found?.[plurals.select(n)]) ?? found?.other ?? (n === 1 ? one : other);
}

function fill(text: string, values?: Values): string {
  return values ? text.replace(/\{(\w+)\}/g, (all, name: string) => String(values[name] ?? all)) : text;
}

/** A text with elements as values: `<Text of="Slower than {usual}" usual={<b>1 s</b>} />`. `null` and `false` are shown as nothing. */
export function Text({ of, ...values }: { of: string } & Record<string, ComponentChildren>): ComponentChildren[] {
  const found = catalog.texts[of];
  return elements(typeof found === 'string' ? found : of, values);
}

/** A text for a number with elements as values, as `tn`. `{n}` needs a value. */
export function TextN({ count, one, other, ...values }: { count: number; one: string; other: string } & Record<string, ComponentChildren>): ComponentChildren[] {
  return elements(form(count, one, other), values);
}

function elements(text: string, values: Record<string, ComponentChildren>): ComponentChildren[] {
  return text.split(/\{(\w+)\}/).map((part, i) => (i % 2 === 0 ? part : part in values ? values[part] : `{${part}}`));
}
