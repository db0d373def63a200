import { defineConfig } from 'vitest/config';
import { className } from './build/class-names.ts';
import { compress } from './build/compress.ts';
import { bootData, proxy } from './build/develop.ts';
import { notePackages, writeLicenses } from './build/licenses.ts';

// Small files compress badly: one chunk for what several pages need, and one style sheet for what no large page needs at its start.
const groups = [
  { name: 'styles', test: /src[\\/](pages[\\/](sampling|status|compare|errors|services?|map|later|overview)|trace[\\/]tabs|pages[\\/]explore[\\/](groups|live|errors)|errors)[\\/].*\.module\.css|pattern\.module\.css/, priority: 2 },
  { name: 'shared', test: /src[\\/](shell|charts|query)[\\/]/, minShareCount: 3, priority: 1 },
];

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
    rolldownOptions: { output: { advancedChunks: { groups } }, checks: { bundlerTimings: false } }, // not messages about slow plugins
  },
  worker: { format: 'es', plugins: () => [notePackages()] },
  css: { modules: { generateScopedName: className } },
  server: { proxy },
  test: { include: ['{src,build}/**/*.test.ts', 'test/golden/*.test.ts'], testTimeout: 60_000 },
});
