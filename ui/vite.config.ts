import { defineConfig } from 'vitest/config';
import { className } from './build/class-names.ts';
import { compress } from './build/compress.ts';
import { bootData, proxy } from './build/develop.ts';
import { notePackages, writeLicenses } from './build/licenses.ts';

export default defineConfig({
  plugins: [notePackages(), writeLicenses(), compress(), bootData()],
  base: './', // relative: the page may be served below any path
  build: {
    outDir: process.env.UI_OUT ?? 'dist',
    emptyOutDir: true,
    assetsDir: 'assets',
    assetsInlineLimit: 0, // the Content-Security-Policy forbids data URLs
    modulePreload: { polyfill: false },
    target: 'es2022',
    rolldownOptions: { checks: { bundlerTimings: false } }, // not messages about slow plugins
  },
  worker: { format: 'es', plugins: () => [notePackages()] },
  css: { modules: { generateScopedName: className } },
  server: { proxy },
  test: { include: ['{src,build}/**/*.test.ts', 'test/golden/*.test.ts'], testTimeout: 60_000 },
});
