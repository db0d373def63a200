// The main pages in German: nothing of the English catalog is left, nothing overflows, and another choice is kept.

import { readFileSync } from 'node:fs';
import type { Browser, Page, Route } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { settle } from '../screenshots/scene.ts';
import { connect, large, newPage, small } from './browser.ts';
import { Program } from './program.ts';
import { sendShop, shopTraces } from './shop.ts';

let program: Program;
let browser: Browser;
let url: string;
let trace: string;
/** The page in which the main pages are opened, in German. */
let page: Page;
let problems: string[];

beforeAll(async () => {
  [program, browser] = await Promise.all([Program.start(), connect()]);
  url = await program.url();
  ({ page, problems } = await newPage(browser, { locale: 'de-DE' }));
  const now = Date.now();
  await sendShop(program, 300, now, 2);
  trace = shopTraces(300, now).find(([root]) => root.name === 'POST /checkout')![0].traceID;
});

afterAll(() => Promise.all([browser?.close(), program?.stop()]));

type Forms = string | Record<string, string>;

/** Texts of a language, by English text. */
const textsOf = (language: string): Record<string, Forms> => (JSON.parse(readFileSync(new URL(`../../texts/${language}.json`, import.meta.url), 'utf8')) as { texts: Record<string, Forms> }).texts;

/** English texts with at least two words, or a capital letter, that are others in German. Values are any text. */
function englishTexts(): RegExp[] {
  const [english, german] = [textsOf('en'), textsOf('de')];
  return Object.keys(english).filter((key) => english[key] !== german[key]).flatMap((key) => Object.values(typeof english[key] === 'string' ? [english[key]] : english[key]).filter((text) => {
    const words = text.replace(/\{\w+\}/g, '').trim();
    return /[a-z]{2,} [a-z]{2,}|^[A-Z][a-z]{3,}/.test(words) && !JSON.stringify(german[key]).includes(words);
  }).map((text) => new RegExp(`^${text.trim().replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{\w+\}/g, '.+')}$`)));
}

/** What users read or hear on a page, apart from code, keys and what the data has. */
function textsOn(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const attributes = ['aria-label', 'title', 'placeholder', 'aria-roledescription'].flatMap((name) => [...document.querySelectorAll(`[${name}]`)].map((e) => e.getAttribute(name)!));
    const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const list = [document.title, ...attributes];
    while (nodes.nextNode()) if (!nodes.currentNode.parentElement!.closest('code, pre, kbd, noscript, script')) list.push(nodes.currentNode.textContent!.trim());
    return [...new Set(list)];
  });
}

/** Elements that are wider than their place: the page, labels of controls that are not cut with an ellipsis, and heads of columns that are not keys. */
function overflows(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const list = document.documentElement.scrollWidth > innerWidth ? ['the page'] : [];
    for (const e of document.querySelectorAll<HTMLElement>('button, [role=tab], nav a, label, h1, h2, th, [role=columnheader]')) {
      const style = getComputedStyle(e);
      if (e.clientWidth > 1 && e.scrollWidth > e.clientWidth + 1 && (style.textOverflow !== 'ellipsis' || (e.matches('th, [role=columnheader]') && !e.textContent!.includes('.'))) && style.display !== 'inline') list.push(`${e.tagName} ${e.textContent} ${e.getAttribute('aria-label') ?? ''}`);
    }
    return list;
  });
}

/** Waits until what depends on the size of the window is drawn. */
async function frames(page: Page): Promise<void> {
  for (let i = 0; i < 4; i++) await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
}

const search = (q: string): string => '/search?q=' + encodeURIComponent(q);
const pages = [
  '/', '/services', '/services/payment', '/services/payment?tab=instances', '/errors', '/dependencies?focus=payment', '/status', '/sampling?service=gateway', '/open', '/nothing/here',
  '/search', search('{ service = "payment" && error }'), search('{ service = "nothing" }'), '/search?tab=spans', '/search?tab=groups', '/search?tab=times', '/search?tab=tree', '/search?tab=explain&sel=errors', '/search?live=1',
  '/trace/TRACE', ...['flame', 'table', 'statistics', 'events', 'graph'].map((tab) => `/trace/TRACE?tab=${tab}`), '/trace/TRACE...baseline', `/trace/${'0'.repeat(31)}1`,
];
const english = englishTexts();

test('many texts are others in German', () => expect(english.length).toBeGreaterThan(1000));

test.each(pages)('%s is German, and nothing overflows at 1440 and 390 px', async (path) => {
  await page.setViewportSize(large);
  await page.goto(url + path.replace('TRACE', trace));
  await expect.poll(() => page.getByRole('main').innerText()).not.toBe('');
  await settle(page);
  expect(await page.locator('html').getAttribute('lang')).toBe('de');
  const wrong = new Set<string>();
  for (const viewport of [large, small]) {
    await page.setViewportSize(viewport);
    await frames(page);
    for (const text of await textsOn(page)) if (english.some((e) => e.test(text)) || /\d\.\d+\u202f?[%mµns]/.test(text)) wrong.add(text);
    for (const text of await overflows(page)) wrong.add(`${text} at ${viewport.width} px`);
  }
  expect([...wrong]).toEqual([]);
  expect(problems.splice(0).filter((p) => !p.includes('404'))).toEqual([]); // the trace that is missing
});

test('a trace file is read in German', async () => {
  const { page } = await newPage(browser, { locale: 'de-DE' });
  await page.goto(url + '/open');
  await page.locator('input[type=file]').setInputFiles({ name: 'a.json', mimeType: 'application/json', buffer: Buffer.from('{"data": [}') });
  await page.getByText('Das ist kein JSON').waitFor(); // from the worker
  await page.context().close();
});

test('the language of the browser is the first choice; another one is kept', async () => {
  const { page, problems } = await newPage(browser, { locale: 'de-DE' });
  const asked: string[] = [];
  page.on('request', (r) => { if (/\/assets\/de-\w+\.json$/.test(r.url())) asked.push(r.url()); });
  const choose = async (settings: string, language: string): Promise<void> => {
    await page.getByRole('button', { name: settings, exact: true }).click();
    await Promise.all([page.waitForEvent('load'), page.getByRole('menuitemradio', { name: language, exact: true }).click()]);
  };
  const heading = (name: string): Promise<void> => page.getByRole('heading', { level: 1, name }).waitFor();
  await page.goto(url + '/open');
  await heading('Traces aus Dateien öffnen');
  expect(asked).toHaveLength(1);
  await choose('Einstellungen', 'English');
  await heading('Open traces from files');
  expect(await page.locator('html').getAttribute('lang')).toBe('en');
  await page.reload();
  await heading('Open traces from files');
  expect(asked).toHaveLength(1);
  await choose('Settings', 'Deutsch');
  await heading('Traces aus Dateien öffnen');
  await page.setViewportSize(small);
  await page.getByRole('navigation', { name: 'Seiten' }).getByRole('button').click();
  await page.getByRole('menuitemradio', { name: 'English', exact: true }).click();
  await heading('Open traces from files');
  expect(problems).toEqual([]);
  await page.context().close();
});

test.each<[string, (route: Route) => Promise<void>]>([
  ['no response', (route) => route.abort()],
  ['an error', (route) => route.fulfill({ status: 502, json: { message: 'later' } })],
])('with %s instead of its texts, the page is English, and German can be chosen', async (_, answer) => {
  const { page } = await newPage(browser, { locale: 'de-DE' });
  const texts = '**/assets/de-*.json';
  await page.route(texts, answer);
  await page.goto(url + '/open');
  await page.getByRole('heading', { level: 1, name: 'Open traces from files' }).waitFor();
  expect(await page.locator('html').getAttribute('lang')).toBe('en');
  await page.unroute(texts);
  await page.getByRole('button', { name: 'Settings', exact: true }).click();
  await page.getByRole('menuitemradio', { name: 'English', exact: true, checked: true }).waitFor();
  await page.getByRole('menuitemradio', { name: 'Deutsch', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'Traces aus Dateien öffnen' }).waitFor();
  await page.context().close();
});
