import type { Rolldown } from 'vite';
import { expect, test } from 'vitest';
import { check } from './compress.ts';

function chunk(fileName: string, imports: string[], css: string[], rest: object = {}): Rolldown.OutputChunk {
  return {
    type: 'chunk', fileName, name: fileName, imports, dynamicImports: [], isEntry: false, viteMetadata: { importedCss: new Set(css) }, ...rest,
  } as unknown as Rolldown.OutputChunk;
}

test('the start of a page is everything that it needs before it shows something', () => {
  const chunks = [
    chunk('entry', ['shared'], ['base.css'], { isEntry: true, dynamicImports: ['list', 'trace'] }),
    chunk('shared', [], []),
    chunk('list', ['shared', 'entry'], ['list.css'], { dynamicImports: ['chart'] }),
    chunk('trace', ['entry', 'rows'], []),
    chunk('rows', ['trace'], []), // a cycle
    chunk('chart', ['shared'], []),
  ];
  const bundle = Object.fromEntries(chunks.map((c) => [c.fileName, c]));
  const sizes = new Map([
    ['entry', 1], ['shared', 10], ['base.css', 100], ['list', 1000], ['list.css', 10_000], ['trace', 100_000], ['rows', 1_000_000], ['chart', 5],
    ['worker.js', 7], ['icon.svg', 9],
  ]);
  expect(check(bundle, sizes)).toEqual([
    { name: 'trace', size: 1_100_111, limit: 80 * 1024 },
    { name: 'list', size: 11_111, limit: 80 * 1024 },
    { name: 'total', size: 10_107, limit: 250 * 1024 }, // by extension
  ]);
});
