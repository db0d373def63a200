import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';

const ui = fileURLToPath(new URL('../..', import.meta.url));
let work = '';

beforeAll(() => {
  work = mkdtempSync(join(tmpdir(), 'tracing-build-'));
});

afterAll(() => rmSync(work, { recursive: true, force: true }));

/** Builds the UI in a folder; returns the files by name. */
function build(sources: string, name: string): Map<string, Buffer> {
  const out = join(work, name);
  execFileSync(process.execPath, [join(ui, 'node_modules/vite/bin/vite.js'), 'build', '--logLevel', 'error'], {
    cwd: sources, env: { ...process.env, UI_OUT: out, NODE_ENV: 'production' }, stdio: ['ignore', 'ignore', 'inherit'],
  });
  const files = (readdirSync(out, { recursive: true }) as string[]).filter((f) => statSync(join(out, f)).isFile()).sort();
  return new Map(files.map((f) => [f, readFileSync(join(out, f))]));
}

/** A copy of the sources in another folder, with other times. */
function copy(): string {
  const folder = join(work, 'copy');
  for (const name of ['build', 'public', 'src', 'index.html', 'package.json', 'tsconfig.json', 'vite.config.ts']) {
    cpSync(join(ui, name), join(folder, name), { recursive: true });
  }
  symlinkSync(join(ui, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

test('the same sources give the same bytes, in every folder', { timeout: 600_000 }, () => {
  const hashes = (files: Map<string, Buffer>): string[] =>
    [...files].map(([name, content]) => `${createHash('sha256').update(content).digest('hex')} ${name}`);
  const first = build(ui, 'first');
  expect(first.size).toBeGreaterThan(5);
  expect(hashes(build(copy(), 'second'))).toEqual(hashes(first));

  expect([...first.keys()].filter((f) => !f.endsWith('.gz'))).toEqual([]);
  const licenses = gunzipSync(first.get('THIRD_PARTY_LICENSES.txt.gz')!).toString();
  for (const name of ['preact', '@preact/signals', '@preact/signals-core', 'vite']) expect(licenses).toMatch(new RegExp(`^${name} [0-9.]+ \\(MIT\\)$`, 'm'));
  expect(licenses).not.toMatch(/^(vitest|playwright-core|typescript) /m);
  expect(licenses.match(/Permission is hereby granted/g)!.length).toBeGreaterThan(3);

  const page = gunzipSync(first.get('index.html.gz')!).toString();
  expect(page).toContain('<base href="/">');
  expect(page).toContain('<script type="application/json" id="boot">{}</script>');
  expect(page).not.toMatch(/<style|<script>|style="| on[a-z]+="/);
});
