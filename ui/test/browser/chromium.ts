import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const windows = ['chromium', 'chromium-browser', 'google-chrome'];
// Without windows, Chromium needs half the CPU time.
const shells = ['chromium-headless-shell', 'chrome-headless-shell'];

/**
 * Returns the executable of a browser: `CHROMIUM`, or the first one on the search path, where shells without windows
 * come first unless times are measured. Without one, prints that the tests are skipped and returns ""; fails if CI=true.
 */
export function findChromium(measured: boolean): string {
  const named = process.env.CHROMIUM;
  if (named) {
    if (isExecutable(named)) return named;
    throw new Error(`CHROMIUM: ${named} is not executable`);
  }
  const folders = (process.env.PATH ?? '').split(delimiter);
  for (const name of measured ? [...windows, ...shells] : [...shells, ...windows]) {
    for (const folder of folders) if (isExecutable(join(folder, name))) return join(folder, name);
  }
  const reason = 'Chromium is not installed; set CHROMIUM to its executable';
  if (process.env.CI === 'true') throw new Error(reason);
  console.log(`${reason}. The tests in a browser are skipped.`);
  return '';
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
