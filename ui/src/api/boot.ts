import type { Boot } from './types';

/** What the server writes into the page. Vite's server, and tests, have defaults instead. */
export const boot: Boot = {
  version: { gitCommit: '', gitVersion: '', buildDate: '' },
  auth: [],
  tenantHeader: '',
  ...(typeof document === 'undefined' ? {} : (JSON.parse(document.getElementById('boot')?.textContent || '{}') as Partial<Boot>)),
};
