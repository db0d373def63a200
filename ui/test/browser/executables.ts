import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const windows = ['chromium', 'chromium-browser', 'google-chrome'];
// Without windows, Chromium needs half the CPU time.
const shells = ['chromium-headless-shell', 'chrome-headless-shell'];

/**
 * Returns the executable of Chromium: `CHROMIUM`, or the first one on the search path, where shells without windows
 * come first unless times are measured. Without one, prints that the tests are skipped and returns ""; fails if CI=true.
 */
export function findChromium(measured: boolean): string {
  const found = find('CHROMIUM', measured ? [...windows, ...shells] : [...shells, ...windows]);
  if (!found) skip('Chromium is not installed; set CHROMIUM to its executable', 'The tests in a browser are skipped.');
  return found;
}

/** Returns the executable of Firefox: `FIREFOX`, or the one on the search path. Without one it does as findChromium. */
export function findFirefox(): string {
  const found = find('FIREFOX', ['firefox-esr', 'firefox']);
  if (!found) skip('Firefox is not installed; set FIREFOX to its executable', 'Its tests are skipped.');
  return found;
}

/** Returns the executable that an environment variable names, or the first one on the search path, or "". */
function find(variable: string, names: string[]): string {
  const named = process.env[variable];
  if (named) {
    if (isExecutable(named)) return named;
    throw new Error(`${variable}: ${named} is not executable`);
  }
  const folders = (process.env.PATH ?? '').split(delimiter);
  for (const name of names) {
    for (const folder of folders) if (isExecutable(join(folder, name))) return join(folder, name);
  }
  return '';
}

function skip(reason: string, result: string): void {
  if (process.env.CI === 'true') throw new Error(reason);
  console.log(`${reason}. ${result}`);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
