import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { collect } from './texts.ts';

const catalogue = new URL('../texts/en.json', import.meta.url);

describe('texts of the sources', () => {
  const { texts, loose } = collect(new URL('../src', import.meta.url).pathname);

  it('are in the catalogue', () => {
    const want = JSON.stringify({ language: 'en', texts }, null, 1) + '\n';
    if (process.env.UPDATE_TEXTS) writeFileSync(catalogue, want);
    const have = existsSync(catalogue) ? readFileSync(catalogue, 'utf8') : '';
    expect(have === want, 'texts/en.json is out of date: run npm run texts').toBe(true);
  });

  it('are all translatable', () => {
    expect(loose).toEqual([]);
  });

  it('have the same placeholders in both forms', () => {
    const names = (s: string): string => [...new Set(s.match(/\{\w+\}/g) ?? [])].sort().join();
    const differ = Object.values(texts).filter((x) => typeof x === 'object' && x.one.includes('{') && names(x.one) !== names(x.other));
    expect(differ).toEqual([]);
  });
});
