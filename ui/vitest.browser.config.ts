// `npm run test-browser`: tests of the pages in Chromium, against the built program, and of the build itself.

import { defineConfig } from 'vitest/config';
import { findChromium } from './test/browser/chromium.ts';

const chromium = findChromium();
const tests = process.env.SCREENSHOTS ? 'test/screenshots/*.test.ts' : 'test/browser/**/*.test.ts';

export default defineConfig({
  test: {
    include: [process.env.SCREENSHOTS ? '' : 'test/build/*.test.ts', chromium ? tests : ''].filter(Boolean),
    passWithNoTests: true,
    env: { CHROMIUM: chromium },
    testTimeout: 60_000,
    hookTimeout: 60_000,
    fileParallelism: false, // each file starts programs and a browser
  },
});
