// Every page of the web UI and its main states, for the tests that visit all of them.

import type { Page } from 'playwright-core';

const failing = '/search?q=' + encodeURIComponent('{ service = "payment" && error }');
const grid = (p: Page) => p.getByRole('grid', { name: 'Traces' });
const tree = (p: Page) => p.getByRole('treegrid', { name: 'Spans' });
const hasRows = (p: Page) => grid(p).locator('tbody').getByRole('row').first().waitFor();
const hasPaths = (p: Page) => p.getByRole('grid', { name: 'Call paths' }).getByRole('row').nth(1).waitFor();
const hasSpans = (p: Page) => tree(p).getByRole('row').first().waitFor();

/** A page, or a main state of it. */
export interface State {
  name: string;
  /** Path and parameters; some states show a checkout, of which `trace` is the ID. */
  path: (trace: string) => string;
  narrow?: boolean;
  /** Brings the page into the state. */
  reach: (page: Page) => Promise<unknown>;
}

/** Waits for the title of a page. */
export const title = (name: string | RegExp) => (p: Page): Promise<void> => p.getByRole('heading', { level: 1, name }).first().waitFor();

/** The overview of a program without data. */
export const first: State = { name: 'first run', path: () => '/', reach: title(/Waiting for the first span/) };

/** Every page and its main states, with the data of `sendShop`. */
export const states: State[] = [
  { name: 'overview', path: () => '/', reach: (p) => p.getByText('UpstreamTimeout').first().waitFor() },
  { name: 'overview with a table', path: () => '/', reach: (p) => p.getByRole('button', { name: 'Share of failed requests: table' }).click() },
  { name: 'overview, narrow', path: () => '/', narrow: true, reach: (p) => p.getByText('UpstreamTimeout').first().waitFor() },
  { name: 'explore', path: () => '/search', reach: async (p) => [await hasRows(p), await p.getByRole('application').waitFor(), await p.getByRole('region', { name: 'service', exact: true }).waitFor()] },
  { name: 'explore with a selection', path: () => failing, reach: (p) => select(p) },
  { name: 'explore, explained', path: () => '/search?tab=explain&sel=errors', reach: (p) => p.getByRole('region', { name: 'Time on the critical path' }).waitFor() },
  { name: 'explore as a table', path: () => failing, reach: (p) => p.getByRole('button', { name: 'Table view' }).click() },
  { name: 'explore with completion', path: () => '/search', reach: (p) => complete(p) },
  { name: 'explore, editing a chip', path: () => failing, reach: (p) => p.getByRole('button', { name: 'service payment', exact: true }).click() },
  { name: 'explore with columns', path: () => failing, reach: (p) => p.getByRole('button', { name: 'Columns' }).click() },
  { name: 'explore with a mistake', path: () => '/search?q=' + encodeURIComponent('{ nam = "x" }'), reach: (p) => p.getByRole('alert').waitFor() },
  { name: 'explore without a match', path: () => '/search?q=' + encodeURIComponent('{ service = "unknown" }'), reach: (p) => p.getByText('No trace matches').waitFor() },
  { name: 'spans', path: () => failing + '&tab=spans', reach: (p) => p.getByRole('tabpanel').getByRole('row').nth(1).waitFor() },
  { name: 'explore, two times', path: () => '/search?tab=times', reach: (p) => p.getByRole('grid', { name: 'Two times compared' }).waitFor() },
  { name: 'explore with a selection', path: () => '/search?sel=errors', reach: (p) => p.getByText('Traces with errors are selected').waitFor() },
  { name: 'trace from a search', path: (trace) => `/trace/${trace}?search=${encodeURIComponent('{ error }')}`, reach: (p) => p.getByRole('button', { name: /^search/ }).waitFor() },
  { name: 'explore, narrow', path: () => failing, narrow: true, reach: hasRows },
  { name: 'facets, narrow', path: () => '/search', narrow: true, reach: (p) => openFacets(p) },
  { name: 'trace', path: (trace) => `/trace/${trace}`, reach: hasSpans },
  { name: 'trace with details', path: (trace) => `/trace/${trace}`, reach: (p) => openDetails(p) },
  { name: 'trace with find', path: (trace) => `/trace/${trace}?find=payment`, reach: (p) => p.getByRole('search').getByText(/^\d+/).first().waitFor() },
  { name: 'trace, folded', path: (trace) => `/trace/${trace}?fold=1`, reach: hasSpans },
  { name: 'trace actions', path: (trace) => `/trace/${trace}`, reach: (p) => p.getByRole('button', { name: 'Actions', exact: true }).click() },
  { name: 'flame graph', path: (trace) => `/trace/${trace}?tab=flame`, reach: (p) => p.locator('canvas[data-drawn]').waitFor() },
  { name: 'table of a trace', path: (trace) => `/trace/${trace}?tab=table&by=service`, reach: (p) => p.getByRole('treegrid').getByRole('row').nth(1).waitFor() },
  { name: 'statistics of a trace, narrow', path: (trace) => `/trace/${trace}?tab=statistics`, narrow: true, reach: (p) => p.getByRole('grid', { name: 'Statistics' }).getByRole('row').nth(1).waitFor() },
  { name: 'events of a trace', path: (trace) => `/trace/${trace}?tab=events`, reach: (p) => p.getByRole('grid', { name: 'Events' }).waitFor() },
  { name: 'graph of a trace', path: (trace) => `/trace/${trace}?tab=graph`, reach: (p) => p.getByRole('list', { name: 'Graph of the trace' }).waitFor() },
  { name: 'trace, narrow', path: (trace) => `/trace/${trace}`, narrow: true, reach: hasSpans },
  { name: 'trace with details, narrow', path: (trace) => `/trace/${trace}`, narrow: true, reach: (p) => openDetails(p) },
  { name: 'missing trace', path: () => '/trace/00000000000000000000000000000001', reach: (p) => p.getByText('not found').first().waitFor() },
  { name: 'compare', path: (trace) => `/trace/${trace}...baseline`, reach: hasPaths },
  { name: 'compare, all rows, largest first', path: (trace) => `/trace/${trace}...baseline?all=1&sort=largest`, reach: hasPaths },
  { name: 'compare, timelines', path: (trace) => `/trace/${trace}...baseline?tab=timelines`, reach: (p) => p.getByRole('grid', { name: 'Timeline of B' }).getByRole('row').nth(1).waitFor() },
  { name: 'compare, timelines, narrow', path: (trace) => `/trace/${trace}...baseline?tab=timelines`, narrow: true, reach: (p) => p.getByRole('grid', { name: 'Timeline of B' }).getByRole('row').first().waitFor() },
  { name: 'compare, attributes', path: (trace) => `/trace/${trace}...baseline?tab=attributes`, reach: (p) => p.getByRole('region', { name: 'Attributes that differ' }).waitFor() },
  { name: 'compare, narrow', path: (trace) => `/trace/${trace}...baseline`, narrow: true, reach: hasPaths },
  { name: 'compare with itself', path: (trace) => `/trace/${trace}...${trace}`, reach: (p) => p.getByText('Both are the same trace.').waitFor() },
  { name: 'open', path: () => '/open', reach: (p) => p.getByRole('button', { name: 'Choose files' }).waitFor() },
  { name: 'open with files', path: () => '/open', reach: (p) => openFiles(p) },
  { name: 'status', path: () => '/status', reach: (p) => p.getByRole('row').nth(1).waitFor() },
  { name: 'series', path: () => '/search?q=' + encodeURIComponent('{ } | rate() by (resource.service.name)'), reach: (p) => p.getByRole('img', { name: /^Series/ }).waitFor() },
  { name: 'groups', path: () => '/search?tab=groups&by=service,name', reach: (p) => p.getByRole('table', { name: /Groups by/ }).getByRole('link').first().waitFor() },
  { name: 'traces as one tree', path: () => '/search?tab=tree', reach: (p) => p.getByRole('table', { name: 'Traces as one tree' }).waitFor() },
  { name: 'traces as one tree, narrow', path: () => '/search?tab=tree&sel=errors', narrow: true, reach: (p) => p.getByRole('table', { name: 'Traces as one tree' }).waitFor() },
  { name: 'groups, narrow', path: () => '/search?tab=groups', narrow: true, reach: (p) => p.getByRole('table', { name: /Groups by/ }).getByRole('link').first().waitFor() },
  { name: 'errors', path: () => '/errors', reach: (p) => openError(p) },
  { name: 'errors, narrow', path: () => '/errors', narrow: true, reach: (p) => openError(p) },
  { name: 'status, narrow', path: () => '/status', narrow: true, reach: (p) => p.getByRole('row').nth(1).waitFor() },
  { name: 'sampling', path: () => `/sampling?service=gateway&trace=${'0'.repeat(31)}1`, reach: (p) => p.getByText('What happens to such a trace').waitFor() },
  { name: 'sampling, narrow', path: () => '/sampling?service=nothing', narrow: true, reach: (p) => p.getByText('What happens to such a trace').waitFor() },
  { name: 'services', path: () => '/services', reach: (p) => p.getByRole('main').getByRole('link', { name: 'payment' }).first().waitFor() },
  { name: 'service', path: () => '/services/payment', reach: async (p) => [await p.getByRole('grid', { name: 'Operations' }).waitFor(), await p.getByRole('grid', { name: 'Callers' }).waitFor(), await p.getByRole('application').waitFor()] },
  { name: 'errors of a service', path: () => '/services/payment?tab=errors', reach: (p) => p.getByRole('tabpanel').getByRole('listitem').first().waitFor() },
  { name: 'instances of a service, narrow', path: () => '/services/payment?tab=instances', narrow: true, reach: (p) => p.getByRole('table', { name: /Groups by/ }).getByRole('link').first().waitFor() },
  { name: 'service, narrow', path: () => '/services/payment', narrow: true, reach: (p) => p.getByRole('grid', { name: 'Operations' }).waitFor() },
  { name: 'live', path: () => '/search?live=1', reach: (p) => p.getByText('Live, showing all').first().waitFor() },
  { name: 'map', path: () => '/dependencies?focus=payment', reach: (p) => hasMap(p) },
  { name: 'map with an edge', path: () => '/dependencies?pick=checkout,payment', reach: (p) => hasMap(p) },
  { name: 'map, narrow', path: () => '/dependencies', narrow: true, reach: (p) => hasMap(p) },
  { name: 'unknown', path: () => '/nothing/here', reach: title(/./) },
  { name: 'palette', path: () => '/status', reach: (p) => opened(p, 'Control+k', 'option') },
  { name: 'keys', path: () => '/status', reach: (p) => opened(p, '?', 'dialog') },
  { name: 'time range', path: () => '/search', reach: (p) => p.getByRole('button', { name: /Time range/ }).click() },
  { name: 'settings', path: () => '/status', reach: (p) => p.getByRole('button', { name: 'Settings' }).click() },
];

async function hasMap(p: Page): Promise<void> {
  await p.locator('[data-state=ready]').getByRole('group', { name: /^Map of/ }).waitFor();
}

/** Selects a rectangle of the heatmap by keyboard. */
export async function select(p: Page): Promise<void> {
  await hasRows(p);
  await p.getByRole('application').focus();
  for (const key of ['ArrowLeft', 'Shift+ArrowLeft', 'Shift+ArrowUp']) await p.keyboard.press(key);
  await p.getByRole('button', { name: 'Clear the selection' }).waitFor();
}

async function complete(p: Page): Promise<void> {
  await p.getByRole('combobox').first().fill('{ serv');
  await p.getByRole('option').first().waitFor();
}

async function openFacets(p: Page): Promise<void> {
  await p.getByRole('button', { name: 'Facets' }).click();
  await p.getByRole('dialog', { name: 'Facets' }).getByRole('region').first().waitFor();
}

async function openDetails(p: Page): Promise<void> {
  await tree(p).getByRole('row').filter({ hasText: 'Charge' }).first().click();
  await p.getByRole('complementary', { name: 'Span details' }).getByText('payment.provider').first().waitFor();
}

async function openError(p: Page): Promise<void> {
  await p.getByRole('button', { name: 'UpstreamTimeout' }).click();
  await p.getByRole('region', { name: 'Stack trace' }).waitFor();
  await p.getByText(/others \d/).first().waitFor();
}

async function openFiles(p: Page): Promise<void> {
  const buffer = Buffer.from(JSON.stringify(['aa', 'bb'].map((traceId) => ({ traceId, id: '1', name: 'get', timestamp: 1700000000000000, duration: 100, localEndpoint: { serviceName: 'web' } }))));
  await p.setInputFiles('input[type=file]', [{ name: 'web.json', mimeType: 'application/json', buffer }, { name: 'bad.json', mimeType: 'application/json', buffer: Buffer.from('{"a"') }]);
  await hasRows(p);
}

async function opened(p: Page, key: string, role: 'option' | 'dialog'): Promise<void> {
  await p.getByRole('main').getByRole('heading').first().waitFor();
  await p.keyboard.press(key);
  await p.getByRole(role).first().waitFor();
}
