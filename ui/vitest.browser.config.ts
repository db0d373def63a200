// `npm run test-browser`: tests of the pages in Chromium, against the built program.

import { defineConfig } from 'vitest/config';
import { findChromium } from './test/browser/chromium.ts';

const chromium = findChromium();

export default defineConfig({
  test: {
    include: chromium ? ['test/browser/**/*.test.ts'] : [],
    passWithNoTests: true,
    env: { CHROMIUM: chromium },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    fileParallelism: false, // each file starts programs and a browser
  },
});
