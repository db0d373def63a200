// Compresses every file of the build and checks the sizes.

import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipAsync } from '@gfx/zopfli'; // 3 % smaller than zlib
import type { Plugin, Rolldown } from 'vite';

/** Maximum size of compressed JavaScript and CSS in bytes: of what a page needs at its start, and of everything. */
export const budget = { start: 80 * 1024, total: 250 * 1024 };

type Bundle = Rolldown.OutputBundle;

/** Plugin that replaces each file of the build by its compressed form, and fails if the sizes are above the budget. */
export function compress(): Plugin {
  let folder = '';
  const sizes = new Map<string, number>();
  let bundle: Bundle = {};
  return {
    name: 'compress',
    apply: 'build',
    writeBundle(options, written) {
      folder = options.dir!;
      bundle = written;
    },
    async closeBundle() {
      if (!folder) return; // the build failed
      sizes.clear();
      for (const file of files(folder)) sizes.set(file, await replace(join(folder, file)));
      const lines = check(bundle, sizes);
      console.log(lines.map((l) => `${l.name.padEnd(10)} ${kib(l.size).padStart(6)} of ${kib(l.limit)} KiB`).join('\n'));
      const large = lines.filter((l) => l.size > l.limit);
      if (large.length) throw new Error('JavaScript and CSS exceed the size budget: ' + large.map((l) => l.name).join(', '));
    },
  };
}

function files(folder: string): string[] {
  return (readdirSync(folder, { recursive: true }) as string[])
    .map((f) => f.replaceAll('\\', '/'))
    .filter((f) => statSync(join(folder, f)).isFile())
    .sort();
}

/** Replaces a file by its compressed form, the same on every machine; returns the new size. */
async function replace(file: string): Promise<number> {
  const zipped = await gzipAsync(readFileSync(file), { numiterations: 5 }); // without a time
  zipped[9] = 255; // not the operating system
  writeFileSync(file + '.gz', zipped);
  rmSync(file);
  return zipped.length;
}

interface Line {
  name: string;
  size: number;
  limit: number;
}

/** Sizes of the start of each page, largest first, and of everything. */
export function check(bundle: Bundle, sizes: Map<string, number>): Line[] {
  const sum = (names: Iterable<string>): number => [...names].reduce((n, f) => n + (sizes.get(f) ?? 0), 0);
  const chunks = Object.values(bundle).filter((c) => c.type === 'chunk');
  const entry = chunks.find((c) => c.isEntry)!;
  const pages = entry.dynamicImports.map((file) => {
    const needed = closure(bundle, file, closure(bundle, entry.fileName, new Set()));
    return { name: (bundle[file] as Rolldown.OutputChunk).name, size: sum(needed), limit: budget.start };
  });
  pages.sort((a, b) => b.size - a.size);
  return [...pages, { name: 'total', size: sum([...sizes.keys()].filter((f) => /\.(js|css)$/.test(f))), limit: budget.total }];
}

/** Adds a chunk, what it imports, and their style sheets. */
function closure(bundle: Bundle, file: string, into: Set<string>): Set<string> {
  const chunk = bundle[file];
  if (into.has(file) || chunk?.type !== 'chunk') return into;
  into.add(file);
  for (const css of chunk.viteMetadata?.importedCss ?? []) into.add(css);
  for (const next of chunk.imports) closure(bundle, next, into);
  return into;
}

function kib(bytes: number): string {
  return (bytes / 1024).toFixed(1);
}
