// `npm run test-browser`: tests of the pages in Chromium, against the built program, and of the build itself.

import { defineConfig } from 'vitest/config';
import { findChromium } from './test/browser/chromium.ts';

const chromium = findChromium();

export default defineConfig({
  test: {
    include: ['test/build/*.test.ts', ...(chromium ? ['test/browser/**/*.test.ts'] : [])],
    env: { CHROMIUM: chromium },
    testTimeout: 60_000,
    hookTimeout: 60_000,
    fileParallelism: false, // each file starts programs and a browser
  },
});
