import { describe, expect, it } from 'vitest';
import { emptyView, parse } from '../shell/url';
import { decodeSaved, encodeSaved, maxSaved, merge, parseSaved, replaceSaved, save, savedSearches, searchOf } from './saved';

const a = { name: 'Slow checkouts', url: '/search?q=%7B+duration+%3E+1s+%7D' };
const b = { name: 'Fehler – größer', url: '/search?q=%7B+error+%7D&tab=spans' };

describe('saved searches', () => {
  it('come through a link', () => {
    expect(decodeSaved(encodeSaved([a, b]))).toEqual([a, b]);
    expect(encodeSaved([a, b])).toMatch(/^[\w-]+$/);
    expect(decodeSaved('%%%')).toEqual([]);
    expect(decodeSaved(encodeSaved([a]).slice(0, 9))).toEqual([]);
  });

  it('leave out what is not a search', () => {
    const other = [{ name: 'x', url: 'https://evil.example/search' }, { name: 'x', url: '/trace/1' }, { name: '', url: '/search' }, { name: 'x'.repeat(101), url: '/search' }, null, 7, { name: 3, url: '/search' }, { name: 'x', url: '/searching' }];
    expect(parseSaved(JSON.stringify([...other, a]))).toEqual([a]);
    expect(parseSaved('{}')).toEqual([]);
    expect(parseSaved(JSON.stringify(Array(500).fill(a)))).toHaveLength(maxSaved);
  });

  it('keep the search of a view, without its looks', () => {
    const v = { ...emptyView({ page: 'explore' as const }), q: '{ error }', range: { from: 'now-6h', to: 'now' }, tab: 'spans', cols: ['span.a,b', 'http.route'], by: ['service'], theme: 'dark' as const, zone: 'utc' as const };
    const url = searchOf(v);
    expect(url).not.toMatch(/theme|tz/);
    expect(parse(new URL(url, 'http://localhost'), '')).toEqual({ ...v, theme: '', zone: '' });
  });

  it('replace, merge and number names', () => {
    expect(save([a, b], { name: a.name, url: '/search' })).toEqual([b, { name: a.name, url: '/search' }]);
    expect(merge([a], [a, { ...a, url: '/search' }, b])).toEqual({ all: [a, { name: 'Slow checkouts (2)', url: '/search' }, b], added: 2 });
  });

  it('are kept by name, also without storage', () => {
    const kept: string[] = [];
    replaceSaved([a, b], { getItem: () => null, setItem: (_, text) => void kept.push(text) });
    expect(parseSaved(kept[0]!)).toEqual([b, a]);
    replaceSaved([a], { getItem: () => null, setItem: () => { throw new Error('full'); } });
    expect(savedSearches.value).toEqual([a]);
  });
});
