import { afterEach, describe, expect, it } from 'vitest';
import { setCatalog, t, Text, tn } from './text';

describe('texts', () => {
  afterEach(() => setCatalog(null));

  it('are English without a catalog', () => {
    expect(t('Sort by {key}, then {other}', { key: 'time' })).toBe('Sort by time, then {other}');
    expect(tn(1, '{n} span', '{n} spans')).toBe('1 span');
    expect(tn(12431, '{n} span', '{n} spans', { n: '12,431' })).toBe('12,431 spans');
  });

  it('have elements as values, and nothing where a value is null', () => {
    expect(Text({ of: 'gap{usual}', usual: null })).toEqual(['gap', null, '']);
    expect(Text({ of: 'gap{usual}' })).toEqual(['gap', '{usual}', '']);
  });

  it('are translated by their English form, in the plural of the language', () => {
    setCatalog({ language: 'cs', texts: { 'Sort by {key}': 'Řadit podle {key}', '{n} traces': { one: '{n} trasa', few: '{n} trasy', other: '{n} tras' } } });
    expect(t('Sort by {key}', { key: 'x' })).toBe('Řadit podle x');
    expect([1, 3, 5].map((n) => tn(n, '{n} trace', '{n} traces'))).toEqual(['1 trasa', '3 trasy', '5 tras']);
    expect(t('Unknown')).toBe('Unknown');
  });
});
