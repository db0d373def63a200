// `npm run test-browser`: tests of the pages in Chromium, and short ones in Firefox, against the built program.
// SHORT limits them to the commonest tasks. BENCH measures the pages instead, SCREENSHOTS draws them.

import { defineConfig } from 'vitest/config';
import { findChromium, findFirefox } from './test/browser/executables.ts';

const { BENCH, RUNS, SCREENSHOTS, IMAGES, SHORT } = process.env;
const chromium = findChromium(!!BENCH && RUNS !== '1');
const special = BENCH ? 'bench/*' : SCREENSHOTS ? 'screenshots/screenshots' : IMAGES ? 'screenshots/images' : '';
const short = ['demo', 'open', 'saved', 'smoke', 'tasks'].join('|');
const tests = special ? `test/${special}.test.ts` : SHORT ? `test/browser/@(${short}).test.ts` : 'test/browser/**/*.test.ts';
const firefox = chromium && !special && !SHORT ? findFirefox() : '';

export default defineConfig({
  test: {
    include: chromium ? [tests] : [],
    exclude: firefox ? [] : ['test/browser/firefox.test.ts'],
    passWithNoTests: true,
    env: { CHROMIUM: chromium, FIREFOX: firefox },
    testTimeout: 600_000, // for what hangs: on a loaded machine, tests take many times as long
    hookTimeout: 600_000,
    expect: { poll: { timeout: 60_000 } }, // as in browser.ts
    globalSetup: 'test/browser/setup.ts',
    fileParallelism: !special, // each file starts its own programs
    maxWorkers: 2,
    isolate: false, // the files share the modules of Playwright, which take a second to load
  },
});
