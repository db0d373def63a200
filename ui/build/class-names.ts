import { readdirSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const src = fileURLToPath(new URL('../src', import.meta.url));
const modules = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((f) => f.endsWith('.module.css')).sort();

/**
 * Name of a class, or of keyframes, of a CSS module in the build: letters for the module, and the number of the name in it.
 * Compressed, all names together take 13 KiB less than readable ones with hashes.
 */
export function className(name: string, file: string, css: string): string {
  const names = [...new Set([...css.matchAll(/(?:\.|@keyframes\s+)(-?[_a-zA-Z][\w-]*)/g)].map((m) => m[1]!))];
  const [module, at] = [modules.indexOf(relative(src, file)), names.indexOf(name)];
  if (module < 0 || at < 0) throw new Error(`${file}: no name for ${name}`);
  return letters(module) + at.toString(36);
}

/** A number as capital letters: A, B, ..., Z, BA. */
function letters(n: number): string {
  const rest = String.fromCharCode(65 + (n % 26));
  return n < 26 ? rest : letters(Math.floor(n / 26)) + rest;
}
