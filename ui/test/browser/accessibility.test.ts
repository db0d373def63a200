// Every page and main state with axe-core in both themes, by keyboard, with live regions and with reduced motion.

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { check } from './axe.ts';
import { connect, large, newPage, small } from './browser.ts';
import { Program } from './program.ts';
import { sendShop } from './shop.ts';
import { first, select, states, title, type State } from './states.ts';

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

async function visit(state: State): Promise<void> {
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  await page.setViewportSize(state.narrow ? small : large);
  await page.goto(url + state.path(checkout));
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
