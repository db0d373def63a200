import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ui = fileURLToPath(new URL('..', import.meta.url));

test('the packages in the folder vendor are those that are installed', () => {
  const files = readdirSync(join(ui, 'vendor'), { recursive: true, encoding: 'utf8' })
    .filter((f) => !f.startsWith('inter-ui') && statSync(join(ui, 'vendor', f)).isFile()); // the font is a part of its package: build/font.sh
  expect(files.length).toBeGreaterThan(5);
  const differ = files.filter((f) => {
    const installed = readFileSync(join(ui, 'node_modules', f));
    if (process.env.UPDATE_VENDOR) writeFileSync(join(ui, 'vendor', f), installed);
    return !installed.equals(readFileSync(join(ui, 'vendor', f)));
  });
  expect(differ, 'other files in ui/vendor: run npm run vendor').toEqual([]);
});
