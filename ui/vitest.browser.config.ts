// `npm run test-browser`: tests of the pages in Chromium, and short ones in Firefox, against the built program.
// SHORT leaves out the longest files, and those of what seldom changes. BENCH measures the pages instead, SCREENSHOTS draws them.

import { defineConfig } from 'vitest/config';
import { findChromium, findFirefox } from './test/browser/executables.ts';

const { BENCH, RUNS, SCREENSHOTS, IMAGES, SHORT } = process.env;
const chromium = findChromium(!!BENCH && RUNS !== '1');
const special = BENCH ? 'bench/*' : SCREENSHOTS ? 'screenshots/screenshots' : IMAGES ? 'screenshots/images' : '';
const tests = special ? `test/${special}.test.ts` : 'test/browser/**/*.test.ts';

const long = ['accessibility', 'documentation', 'failures', 'firefox', 'language', 'large', 'live', 'map', 'serving', 'split'];
const firefox = chromium && !special && !SHORT ? findFirefox() : '';
const left = SHORT ? long : firefox ? [] : ['firefox'];

export default defineConfig({
  test: {
    include: chromium ? [tests] : [],
    exclude: left.map((name) => `test/browser/${name}.test.ts`),
    passWithNoTests: true,
    env: { CHROMIUM: chromium, FIREFOX: firefox },
    testTimeout: BENCH ? 300_000 : 180_000,
    hookTimeout: BENCH ? 300_000 : 180_000,
    expect: { poll: { timeout: 60_000 } }, // as in browser.ts
    globalSetup: 'test/browser/setup.ts',
    fileParallelism: !special, // each file starts its own programs
    maxWorkers: 2,
    isolate: false, // the files share the modules of Playwright, which take a second to load
  },
});
