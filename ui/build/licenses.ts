// Collects the licences of the packages whose code is in the build, also in workers.

import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, sep } from 'node:path';
import type { Plugin } from 'vite';

/** Name of the file in the build. */
export const licensesFile = 'THIRD_PARTY_LICENSES.txt';

const folders = new Set<string>();

/** Plugin that notes the packages of a bundle. Workers are bundles of their own. */
export function notePackages(): Plugin {
  return {
    name: 'note-packages',
    generateBundle(_options, bundle) {
      for (const chunk of Object.values(bundle)) if (chunk.type === 'chunk') for (const id of chunk.moduleIds) note(id);
    },
  };
}

/** Plugin that writes the licences of all noted packages into the build. */
export function writeLicenses(): Plugin {
  return {
    name: 'write-licenses',
    buildStart: () => folders.clear(),
    generateBundle: {
      order: 'post',
      handler() {
        const texts = [...folders].map(license).sort();
        this.emitFile({ type: 'asset', fileName: licensesFile, source: texts.join('\n' + '-'.repeat(80) + '\n\n') });
      },
    },
  };
}

function note(module: string): void {
  const require = createRequire(import.meta.url);
  // Helper code of the build tools.
  if (module.includes('vite/preload-helper')) folders.add(dirname(require.resolve('vite/package.json')));
  if (module.includes('rolldown/runtime')) folders.add(dirname(require.resolve('rolldown/package.json')));
  const parts = module.split('?')[0].replace(/^\0/, '').split(/[\\/]/);
  const at = parts.lastIndexOf('node_modules');
  if (at < 0) return;
  folders.add(parts.slice(0, at + (parts[at + 1].startsWith('@') ? 3 : 2)).join(sep));
}

function license(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<string, string>;
  const file = readdirSync(folder).sort().find((f) => /^licen[cs]e/i.test(f));
  if (!file) throw new Error(`package ${name}: no licence file; do not bundle the package, or add its licence here`);
  // Vite lists what its own program contains; only its helper code is in the build.
  const [text] = readFileSync(join(folder, file), 'utf8').split('# Licenses of bundled dependencies');
  return `${name} ${version} (${license})\n\n${text.trim()}\n`;
}
