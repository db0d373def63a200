// `npm run dev`, and the unit tests. The program tools/webui makes the build.

import { defineConfig } from 'vitest/config';
import { bootData, proxy } from './build/develop.ts';

export default defineConfig({
  plugins: [bootData()],
  server: { proxy },
  test: {
    include: ['{src,build}/**/*.test.ts', 'test/golden/*.test.ts'],
    testTimeout: 60_000,
    isolate: false, // loading the same modules for each file needs as much CPU time as the tests; a test restores what it replaces
  },
});
