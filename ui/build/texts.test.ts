import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { collect } from './texts.ts';

const folder = new URL('../texts/', import.meta.url);
const catalog = new URL('en.json', folder);
const placeholders = (s: string): string => [...new Set(s.match(/\{\w+\}/g) ?? [])].sort().join();

describe('texts of the sources', () => {
  const { texts, loose } = collect(new URL('../src', import.meta.url).pathname);

  it('are in the catalog', () => {
    const want = JSON.stringify({ language: 'en', texts }, null, 1) + '\n';
    if (process.env.UPDATE_TEXTS) writeFileSync(catalog, want);
    const have = existsSync(catalog) ? readFileSync(catalog, 'utf8') : '';
    expect(have === want, 'texts/en.json is out of date: run npm run texts').toBe(true);
  });

  it('are all translatable', () => {
    expect(loose).toEqual([]);
  });

  it('have the same placeholders in both forms', () => {
    const differ = Object.values(texts).filter((x) => typeof x === 'object' && x.one.includes('{') && placeholders(x.one) !== placeholders(x.other));
    expect(differ).toEqual([]);
  });

  describe.each(readdirSync(folder).filter((f) => f !== 'en.json'))('in %s', (file) => {
    const { language, texts: translated } = JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as { language: string; texts: Record<string, string | Record<string, string>> };
    const forms = (key: string): string[] => Object.values(typeof translated[key] === 'string' ? [translated[key]] : translated[key] ?? {});

    it('are complete, in the order of the catalog', () => {
      expect(file).toBe(`${language}.json`);
      expect(Object.keys(translated)).toEqual(Object.keys(texts));
      expect(Object.keys(texts).filter((key) => forms(key).some((form) => !form.trim()))).toEqual([]);
    });

    it('have a form for each plural of the language', () => {
      const wanted = new Intl.PluralRules(language).resolvedOptions().pluralCategories.sort().join();
      expect(Object.keys(texts).filter((key) => (typeof texts[key] === 'string' ? typeof translated[key] !== 'string' : Object.keys(translated[key] ?? {}).sort().join() !== wanted))).toEqual([]);
    });

    it('have the placeholders of the catalog', () => {
      // The form for 1 can do without the number.
      const wrong = (key: string, form: string): boolean => placeholders(form) !== placeholders(key) && !(form === (translated[key] as Record<string, string>).one && placeholders(form) === placeholders(key.replace('{n}', '')));
      expect(Object.keys(texts).filter((key) => forms(key).some((form) => wrong(key, form)))).toEqual([]);
    });

    it('begin and end with the same spaces', () => {
      const spaces = (s: string): string => `${/^ ?/.exec(s)![0]}|${/ ?$/.exec(s)![0]}`;
      expect(Object.keys(texts).filter((key) => forms(key).some((form) => spaces(form) !== spaces(key) && !/^[,;.]/.test(form)))).toEqual([]);
    });
  });
});
