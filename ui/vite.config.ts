import { defineConfig } from 'vitest/config';
import { compress } from './build/compress.ts';
import { notePackages, writeLicenses } from './build/licenses.ts';

// The address of a running all-in-one, for `npm run dev`.
const server = process.env.TRACING_URL ?? 'http://localhost:16686';

export default defineConfig({
  plugins: [notePackages(), writeLicenses(), compress()],
  base: './', // relative: the page may be served below any path
  build: {
    outDir: process.env.UI_OUT ?? 'dist',
    emptyOutDir: true,
    assetsDir: 'assets',
    assetsInlineLimit: 0, // the Content-Security-Policy forbids data URLs
    modulePreload: { polyfill: false },
    target: 'es2022',
  },
  worker: { format: 'es', plugins: () => [notePackages()] },
  css: { modules: { generateScopedName: '[name]-[local]-[hash:base64:4]' } },
  server: { proxy: { '/api': server } },
  test: { include: ['src/**/*.test.ts'] },
});
