import { describe, expect, it } from 'vitest';
import { pathsFound } from './use-paths';

const path = (traceID: string) => ({ traceID, services: [], gap: 0 });

describe('critical paths of listed traces', () => {
  it('are missing for good only if nothing was left out', () => {
    expect(pathsFound(['a', 'b'], [path('a')], true)).toEqual([['a', path('a')], ['b', null]]);
  });
  it('that are left out are asked for again', () => {
    expect(pathsFound(['a', 'b'], [path('a')], false)).toEqual([['a', path('a')]]);
  });
  it('are missing for good if asking again gives none', () => {
    expect(pathsFound(['b'], [], false)).toEqual([['b', null]]);
  });
});
