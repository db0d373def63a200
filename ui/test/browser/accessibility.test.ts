// Every page and main state with axe-core in both themes, by keyboard, with live regions and with reduced motion.

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { check } from './axe.ts';
import { connect, large, newPage, small } from './browser.ts';
import { Program } from './program.ts';
import { sendShop } from './shop.ts';

let browser: Browser;
let program: Program;
let page: Page;
let url = '';
let checkout = '';

beforeAll(async () => {
  [browser, program] = await Promise.all([connect(), Program.start()]);
  url = await program.url();
  ({ page } = await newPage(browser));
});

afterAll(() => Promise.all([browser?.close(), program?.stop()]));

const failing = '/search?q=' + encodeURIComponent('{ service = "payment" && error }');
const grid = (p: Page) => p.getByRole('grid', { name: 'Traces' });
const tree = (p: Page) => p.getByRole('treegrid', { name: 'Spans' });
const hasRows = (p: Page) => grid(p).locator('tbody').getByRole('row').first().waitFor();
const hasPaths = (p: Page) => p.getByRole('grid', { name: 'Call paths' }).getByRole('row').nth(1).waitFor();
const hasSpans = (p: Page) => tree(p).getByRole('row').first().waitFor();

interface State {
  name: string;
  path: () => string;
  narrow?: boolean;
  /** Brings the page into the state. */
  reach: (page: Page) => Promise<unknown>;
}

const title = (name: string | RegExp) => (p: Page): Promise<void> => p.getByRole('heading', { level: 1, name }).first().waitFor();

const first: State = { name: 'first run', path: () => '/', reach: title(/Waiting for the first span/) };

const states: State[] = [
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
  { name: 'trace from a search', path: () => `/trace/${checkout}?search=${encodeURIComponent('{ error }')}`, reach: (p) => p.getByRole('button', { name: /^search/ }).waitFor() },
  { name: 'explore, narrow', path: () => failing, narrow: true, reach: hasRows },
  { name: 'facets, narrow', path: () => '/search', narrow: true, reach: (p) => openFacets(p) },
  { name: 'trace', path: () => `/trace/${checkout}`, reach: hasSpans },
  { name: 'trace with details', path: () => `/trace/${checkout}`, reach: (p) => openDetails(p) },
  { name: 'trace with find', path: () => `/trace/${checkout}?find=payment`, reach: (p) => p.getByRole('search').getByText(/^\d+/).first().waitFor() },
  { name: 'trace, folded', path: () => `/trace/${checkout}?fold=1`, reach: hasSpans },
  { name: 'trace actions', path: () => `/trace/${checkout}`, reach: (p) => p.getByRole('button', { name: 'Actions', exact: true }).click() },
  { name: 'flame graph', path: () => `/trace/${checkout}?tab=flame`, reach: (p) => p.locator('canvas[data-drawn]').waitFor() },
  { name: 'table of a trace', path: () => `/trace/${checkout}?tab=table&by=service`, reach: (p) => p.getByRole('treegrid').getByRole('row').nth(1).waitFor() },
  { name: 'statistics of a trace, narrow', path: () => `/trace/${checkout}?tab=statistics`, narrow: true, reach: (p) => p.getByRole('grid', { name: 'Statistics' }).getByRole('row').nth(1).waitFor() },
  { name: 'events of a trace', path: () => `/trace/${checkout}?tab=events`, reach: (p) => p.getByRole('grid', { name: 'Events' }).waitFor() },
  { name: 'graph of a trace', path: () => `/trace/${checkout}?tab=graph`, reach: (p) => p.getByRole('list', { name: 'Graph of the trace' }).waitFor() },
  { name: 'trace, narrow', path: () => `/trace/${checkout}`, narrow: true, reach: hasSpans },
  { name: 'trace with details, narrow', path: () => `/trace/${checkout}`, narrow: true, reach: (p) => openDetails(p) },
  { name: 'missing trace', path: () => '/trace/00000000000000000000000000000001', reach: (p) => p.getByText('not found').first().waitFor() },
  { name: 'compare', path: () => `/trace/${checkout}...baseline`, reach: hasPaths },
  { name: 'compare, all rows, largest first', path: () => `/trace/${checkout}...baseline?all=1&sort=largest`, reach: hasPaths },
  { name: 'compare, timelines', path: () => `/trace/${checkout}...baseline?tab=timelines`, reach: (p) => p.getByRole('grid', { name: 'Timeline of B' }).getByRole('row').nth(1).waitFor() },
  { name: 'compare, timelines, narrow', path: () => `/trace/${checkout}...baseline?tab=timelines`, narrow: true, reach: (p) => p.getByRole('grid', { name: 'Timeline of B' }).getByRole('row').first().waitFor() },
  { name: 'compare, attributes', path: () => `/trace/${checkout}...baseline?tab=attributes`, reach: (p) => p.getByRole('region', { name: 'Attributes that differ' }).waitFor() },
  { name: 'compare, narrow', path: () => `/trace/${checkout}...baseline`, narrow: true, reach: hasPaths },
  { name: 'compare with itself', path: () => `/trace/${checkout}...${checkout}`, reach: (p) => p.getByText('Both are the same trace.').waitFor() },
  { name: 'open', path: () => '/open', reach: (p) => p.getByRole('button', { name: 'Choose files' }).waitFor() },
  { name: 'open with files', path: () => '/open', reach: (p) => openFiles(p) },
  { name: 'status', path: () => '/status', reach: (p) => p.getByRole('row').nth(1).waitFor() },
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

async function select(p: Page): Promise<void> {
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

async function visit(state: State): Promise<void> {
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  await page.setViewportSize(state.narrow ? small : large);
  await page.goto(url + state.path());
  await state.reach(page);
}

async function checkState(state: State): Promise<void> {
  await visit(state);
  const { grave, minor } = await check(page, state.name);
  for (const line of minor) console.log(line);
  expect(grave).toEqual([]);
}

test('first run', () => checkState(first));

test('the check finds faults', async () => {
  await page.goto(url + '/open');
  await page.getByRole('button', { name: 'Choose files' }).waitFor();
  await page.evaluate(() => {
    const fault = document.createElement('p');
    fault.innerHTML = '<button></button><span>pale</span>';
    (fault.lastChild as HTMLElement).style.color = 'light-dark(#ddd, #333)';
    document.querySelector('main')!.append(fault);
  });
  const { grave } = await check(page, 'faults');
  expect(grave.map((line) => line.replace(/ \(.*/s, '')).sort()).toEqual(['faults, dark: color-contrast', 'faults, light: button-name', 'faults, light: color-contrast']);
});

describe('with data', () => {
  beforeAll(async () => {
    const traces = await sendShop(program, 600);
    checkout = traces.findLast((t) => t[0].name === 'POST /checkout' && t[0].error)![0].traceID;
  });

  for (const state of states) test(state.name, () => checkState(state));

  test('sign in', async () => {
    const route = '**/api/ui/v1/**';
    await page.route(route, (r) => r.fulfill({ status: 401, json: { errors: [{ code: 401, msg: 'credentials are missing' }] } }));
    await checkState({ name: 'sign in', path: () => '/search', reach: (p) => p.getByRole('dialog', { name: 'Sign in' }).waitFor() });
    await expect.poll(() => page.evaluate(() => document.activeElement?.closest('dialog') !== null)).toBe(true);
    await page.unroute(route);
  });

  test('dialogs keep the focus, and give it back', async () => {
    await visit({ name: '', path: () => '/status', reach: title(/./) });
    for (const name of [/Trace ID, service or text/, 'Keys and help']) {
      const button = page.getByRole('button', { name });
      await button.focus();
      await page.keyboard.press('Enter');
      await page.getByRole('dialog').waitFor();
      // The browser's own controls come between the last element of a dialog and its first one.
      for (let i = 0; i < 4; i++) {
        await expect.poll(() => page.evaluate(() => document.activeElement === document.body || document.activeElement!.closest('dialog') !== null)).toBe(true);
        await page.keyboard.press('Tab');
      }
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await expect.poll(() => button.evaluate((e) => e === document.activeElement)).toBe(true);
    }
  });

  test('menus and popovers give the focus back', async () => {
    await visit(states.find((s) => s.name === 'explore')!);
    for (const name of ['Settings', /Time range/, 'Columns', 'service any']) {
      const button = page.getByRole('button', { name });
      await button.focus();
      await page.keyboard.press('Enter');
      const surface = page.locator('[popover]:popover-open');
      await surface.waitFor();
      await expect.poll(() => surface.evaluate((e) => e.contains(document.activeElement)), { message: String(name) }).toBe(true);
      await page.keyboard.press('Escape');
      await surface.waitFor({ state: 'detached' });
      await expect.poll(() => button.evaluate((e) => e === document.activeElement), { message: String(name) }).toBe(true);
    }
  });

  test.each([
    ['overview', ['banner', 'Share of failed requests', 'Services', 'Errors and changes']],
    ['explore', ['banner', 'search', 'Facets', 'Heatmap of durations', 'Traces']],
    ['trace with details', ['banner', 'Whole trace', 'Spans', 'Span details']],
    ['status', ['banner']],
    ['open with files', ['banner', 'Traces']],
  ])('Tab visits the regions of: %s', async (name, regions) => {
    await visit(states.find((s) => s.name === name)!);
    await page.getByRole('link', { name: skip }).focus();
    const stops = await tabStops();
    const visited = stops.flatMap((s) => s.regions);
    for (const region of regions) expect(visited, region).toContain(region);
    // Rows are one stop, whatever their number. Heads of sortable columns are outside of the rows.
    for (const list of ['Services', 'Traces', 'Spans'].filter((l) => regions.includes(l))) expect(stops.filter((s) => s.row && s.regions.includes(list)).map((s) => s.name), list).toHaveLength(1);
    expect(stops.filter((s) => s.name === '' || !s.visible)).toEqual([]);
    expect(await unreachable()).toEqual([]);
  });

  test('numbers of results, selections and matches are announced', async () => {
    const live = page.locator('[role=status][aria-live=polite].visually-hidden');
    await visit(states.find((s) => s.name === 'explore')!);
    await expect.poll(() => live.textContent()).toMatch(/^Traces: 50 .*newest first$/);
    await select(page);
    await expect.poll(() => live.textContent()).toMatch(/selected/i);
    await page.keyboard.press('Escape');
    await visit(states.find((s) => s.name === 'trace')!);
    await page.keyboard.press('/');
    await page.keyboard.type('payment');
    await expect.poll(() => live.textContent()).toMatch(/^\d+ spans match/);
  });

  test('with reduced motion, nothing moves', async () => {
    const moving = (): Promise<string[]> => page.evaluate(() => [...document.querySelectorAll('*')].flatMap((e) => ['', '::before', '::after'].flatMap((pseudo) => {
      const s = getComputedStyle(e, pseudo || null);
      const times = `${s.transitionDuration}, ${s.animationName === 'none' ? '0s' : s.animationDuration}`.split(', ').map(parseFloat);
      return times.some((t) => t > 0.001) ? [`${e.tagName}.${e.className}${pseudo}: ${s.transitionDuration} ${s.animationName}`] : [];
    })));
    for (const name of ['overview', 'explore', 'trace with details', 'palette']) {
      await visit(states.find((s) => s.name === name)!);
      expect(await moving()).toEqual([]);
    }
    await page.emulateMedia({ reducedMotion: 'no-preference' });
    expect((await moving()).length).toBeGreaterThan(0);
  });
});

interface Stop {
  name: string;
  /** Names, or roles without a name, of the regions around it. */
  regions: string[];
  /** It is in a row of a list, or it is the list. */
  row: boolean;
  visible: boolean;
}

const maxStops = 150;
const skip = 'Skip to the content';

/** Presses Tab until the focus leaves the page, or is at its beginning again. */
async function tabStops(): Promise<Stop[]> {
  const stops: Stop[] = [];
  for (let i = 0; i < maxStops; i++) {
    await page.keyboard.press('Tab');
    const stop = await page.evaluate((): Stop | null => {
      const e = document.activeElement;
      if (!e || e === document.body) return null;
      const regions: string[] = [];
      const selector = 'header, nav, main, aside, section, [role=search], [role=region], [role=grid], [role=treegrid], table';
      for (let r: Element | null = e.closest(selector); r; r = r.parentElement?.closest(selector) ?? null) {
        regions.push(r.getAttribute('aria-label') ?? r.getAttribute('role') ?? (r.tagName === 'HEADER' ? 'banner' : r.tagName.toLowerCase()));
      }
      const box = e.getBoundingClientRect();
      const name = e.getAttribute('aria-label') ?? (e as HTMLInputElement).labels?.[0]?.textContent ?? e.textContent ?? '';
      return { name: name.trim() || (e.getAttribute('title') ?? ''), regions, row: e.closest('tbody tr, [data-row]') !== null || e.matches('[role=treegrid]'), visible: box.width > 0 && box.height > 0 };
    });
    if (!stop || stop.name === skip) return stops;
    stops.push(stop);
  }
  throw new Error(`more than ${maxStops} tab stops`);
}

/** Visible controls which Tab does not visit, and which are not in a widget that moves its own focus. */
function unreachable(): Promise<string[]> {
  return page.evaluate(() => {
    const widgets = '[role=grid], [role=treegrid], [role=tablist], [role=radiogroup], [role=menu], [role=listbox], [role=toolbar], ul:has(> [data-row]), tbody:has(> [data-row])';
    return [...document.querySelectorAll<HTMLElement>('a[href], button, input, select, textarea, [role=button], [role=slider], [role=switch]')]
      .filter((e) => e.checkVisibility({ visibilityProperty: true }) && e.tabIndex < 0 && !e.closest(widgets) && !e.closest('[aria-hidden=true]'))
      .map((e) => e.outerHTML.slice(0, 200));
  });
}
