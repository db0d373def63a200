import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect, newPage } from './browser.ts';
import { Program } from './program.ts';
import { sendShop } from './shop.ts';
import { sendSpans, spanID, traceID } from './spans.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await connect();
});
afterAll(() => browser?.close());

describe('first run', () => {
  let program: Program;
  beforeAll(async () => {
    program = await Program.start();
  });
  afterAll(() => program?.stop());

  test('the page waits for the first span, and shows it', async () => {
    const { page, problems } = await newPage(browser);
    await page.goto(await program.url());
    await page.getByRole('heading', { name: /Waiting for the first span/ }).waitFor();
    const port = new URL(await program.address('otlp', 'protocols.http')).port;
    await page.getByText(`:${port}`).first().waitFor();
    for (const tab of await page.getByRole('tab').all()) {
      await tab.click();
      await expect.poll(() => page.getByRole('tabpanel').textContent()).not.toBe('');
    }
    await sendSpans(program, [{ traceID: traceID(), spanID: spanID(), service: 'hello', name: 'first span', start: Date.now() - 300, duration: 250 }]);
    await page.getByRole('link', { name: 'hello' }).first().waitFor();
    expect(problems).toEqual([]);
    await page.context().close();
  });
});

describe('with data', () => {
  let program: Program;
  let url: string;
  beforeAll(async () => {
    program = await Program.start();
    await sendShop(program, 600, Date.now(), 2); // with one hour, it depends on the minute whether enough of it is quiet
    url = await program.url();
  });
  afterAll(() => program?.stop());

  test.each([720, 1110])('names and controls do not overlap at %s px', async (width) => {
    const { page, problems } = await newPage(browser, { viewport: { width, height: 450 } });
    for (const path of ['/', '/services', '/services/payment']) {
      await page.goto(url + path);
      const head = page.getByRole('grid').first().getByRole('columnheader').first();
      await expect.poll(async () => (await head.boundingBox())?.width ?? 0).toBeGreaterThan(140);
      const controls = page.getByRole('banner').locator('> *').filter({ visible: true });
      await expect.poll(async () => {
        const boxes = await controls.evaluateAll((all) => all.map((e) => [e.getBoundingClientRect().left, Math.max(e.getBoundingClientRect().right, ...[...e.querySelectorAll('*')].map((c) => c.getBoundingClientRect().right))]));
        return boxes.filter(([left, right]) => right > left).every(([left], i, list) => i === 0 || left >= list[i - 1][1] - 1);
      }).toBe(true);
    }
    expect(problems).toEqual([]);
    await page.context().close();
  });

  test('the sentence, the failing service and its errors lead to traces', async () => {
    const { page, problems } = await newPage(browser);
    await page.goto(url);
    await expect.poll(() => page.getByRole('heading', { level: 1 }).textContent()).toMatch(/of 9 services are failing/);
    await page.getByText(/^payment fails .*usually .*, since .*\d\d:\d\d/).waitFor();
    const row = page.getByRole('row', { name: /payment/ });
    await row.getByRole('link', { name: /%/ }).click();
    await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe('{ service = "payment" && error }');
    await page.getByRole('grid', { name: 'Traces' }).getByRole('link').first().waitFor();
    await page.goBack();
    await page.getByText('UpstreamTimeout').first().waitFor();
    await page.getByText('payment').first().waitFor();
    expect(problems).toEqual([]);
    await page.context().close();
  });

  test('one incident is one card: source, version, reach, users, errors in causal order, and Explain', async () => {
    const { page, problems } = await newPage(browser);
    await page.goto(url);
    const cards = page.getByRole('region', { name: 'Incidents' });
    await cards.getByText(/^payment fails [\d.]+.% of requests, usually .*, since .*\d\d:\d\d( when|;) version 2\.14\.0 appeared/).waitFor();
    expect(await cards.getByRole('article').count()).toBe(1);
    await cards.getByText(/^\d+ of \d+ failed; version 2\.14\.0 fails [\d.]+.%$/).waitFor();
    await cards.getByText(/^[\d.]+.% of requests to frontend failed \(\d+ of \d+\), usually .*; of POST \/checkout [\d.]+.%$/).waitFor();
    expect(await cards.locator('dd', { has: page.getByRole('link', { name: 'checkout' }) }).first().getByRole('link').allTextContents()).toEqual(['checkout', 'gateway', 'frontend', expect.any(String), expect.any(String)]); // cart and inventory are slow
    const errors = await cards.getByRole('list').getByRole('listitem').allTextContents();
    expect(errors[0]).toBe('UpstreamTimeout in payment');
    expect(errors.length).toBeGreaterThan(2);
    expect(errors.slice(1).every((e) => e.startsWith('→'))).toBe(true);
    await page.getByText(/^All services together, since .*\d\d:\d\d$/).waitFor();
    await page.getByRole('row', { name: /^failing payment .*since/ }).waitFor();
    await cards.getByRole('link', { name: 'Newest failed trace' }).click();
    await page.getByRole('link', { name: /^Part of an incident: payment fails .* version 2\.14\.0 appeared/ }).waitFor();
    await page.goBack();
    await cards.getByRole('button', { name: 'Explain errors' }).click();
    await page.getByText('Spans with errors are selected').first().waitFor();
    const params = new URL(page.url()).searchParams;
    expect([params.get('tab'), params.get('sel'), params.get('q')]).toEqual(['explain', 'errors', '{ service = "payment" && (kind = server || kind = consumer) }']);
    expect(params.get('from')).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:00.000Z$/); // the start of the incident, not of the hour
    await page.goto(url + '/services/frontend'); // reached
    await page.getByText(/^frontend fails [\d.]+.% of requests, usually .*, since .*\d\d:\d\d\.$/).waitFor();
    await page.getByRole('region', { name: 'Incidents' }).getByText(/^payment fails .* version 2\.14\.0 appeared/).waitFor();
    await page.getByText(/^Numbers: since .*\d\d:\d\d$/).waitFor();
    expect(problems).toEqual([]);
    await page.context().close();
  });

  test('an incident is shared as a sentence with a link, and as a picture', async () => {
    const { page, problems } = await newPage(browser);
    await page.goto(url);
    const share = page.getByRole('region', { name: 'Incidents' }).getByRole('button', { name: 'Share' });
    await share.click();
    await page.getByRole('menuitem', { name: 'Copy sentence and link' }).click();
    await page.getByText('Finding copied').first().waitFor();
    await share.click();
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name: 'Download picture' }).click()]);
    expect(file.suggestedFilename()).toBe('finding.png');
    const saved = join(program.folder, 'finding.png');
    await file.saveAs(saved);
    const png = readFileSync(saved);
    expect(png.toString('latin1', 1, 4)).toBe('PNG');
    expect(png.readUInt32BE(16)).toBeGreaterThan(1000); // pixels in a row
    expect(png.length).toBeGreaterThan(20_000); // it is not empty
    expect(problems).toEqual([]);
    await page.context().close();
  });

  test('changes name the new version', async () => {
    const { page } = await newPage(browser);
    await page.goto(url + '/?from=now-40m'); // compared with the time before
    await page.getByText('2.14.0').first().waitFor();
    await page.context().close();
  });

  test('the numbers of ingestion are those of the receiver', async () => {
    const { page } = await newPage(browser);
    await page.goto(url + '/status');
    await page.getByText('protocols.http').or(page.getByText(/OTLP.*HTTP/)).first().waitFor();
    await page.context().close();
  });

  test('an id in the jump box opens the trace, in any notation', async () => {
    const answer = (await (await fetch(`${url}/api/traces?service=payment&limit=1&lookback=2h`)).json()) as { data: { traceID: string }[] };
    const id = answer.data[0].traceID;
    for (const text of [id, id.toUpperCase(), `00-${id}-00f067aa0ba902b7-01`, `http://jaeger.example/trace/${id}?x=y`]) {
      const { page } = await newPage(browser);
      await page.goto(url);
      await page.getByRole('button', { name: /Trace ID, service or text/ }).click();
      await page.keyboard.insertText(text);
      await page.keyboard.press('Enter');
      await page.getByRole('treegrid', { name: 'Spans' }).waitFor();
      await expect.poll(() => new URL(page.url()).pathname).toBe(`/trace/${id}`);
      await page.context().close();
    }
  });

  test('time range, zone and theme are chosen, and stay', async () => {
    const { page } = await newPage(browser);
    await page.goto(url);
    await page.getByRole('button', { name: /Time range/ }).click();
    await page.getByRole('button', { name: /15 min/ }).or(page.getByRole('option', { name: /15 min/ })).or(page.getByRole('radio', { name: /15 min/ })).first().click();
    await expect.poll(() => new URL(page.url()).searchParams.get('from')).toBe('now-15m');
    await page.getByRole('button', { name: 'Settings' }).click();
    await page.getByRole('menuitemradio', { name: 'Dark' }).click();
    await expect.poll(() => page.evaluate(() => document.documentElement.dataset.theme)).toBe('dark');
    await page.getByRole('link', { name: 'Explore', exact: true }).click();
    await expect.poll(() => new URL(page.url()).searchParams.get('from')).toBe('now-15m');
    await page.reload();
    await expect.poll(() => page.evaluate(() => document.documentElement.dataset.theme)).toBe('dark');
    await page.context().close();
  });

  test('an absolute range is entered in the chosen zone', async () => {
    const { page } = await newPage(browser, { timezoneId: 'Asia/Tokyo' });
    await page.goto(url + '/search?q=' + encodeURIComponent('{ service = "payment" }'));
    await page.getByRole('button', { name: /Time range/ }).click();
    await page.getByRole('radio', { name: 'UTC', exact: true }).check();
    const opened = Date.now();
    const minute = (ago: number): string => new Date(opened - ago * 60_000).toISOString().slice(0, 16);
    await page.getByLabel('From', { exact: true }).fill(minute(30).replace('T', ' '));
    await page.getByLabel('To', { exact: true }).fill(minute(10).replace('T', ' '));
    await page.getByRole('button', { name: 'Apply' }).last().click();
    await expect.poll(() => new URL(page.url()).searchParams.get('from')).toMatch(new RegExp('^' + minute(30)));
    await page.getByRole('grid', { name: 'Traces' }).getByRole('columnheader', { name: /UTC/ }).waitFor();
    const newest = page.getByRole('grid', { name: 'Traces' }).locator('tbody time').first();
    await expect.poll(async () => Date.now() - Date.parse((await newest.getAttribute('datetime'))!)).toBeGreaterThan(9 * 60_000);
    await page.context().close();
  });

  test('the palette and the list of keys open with the keyboard', async () => {
    const { page } = await newPage(browser);
    await page.goto(url);
    await page.getByRole('main').getByRole('heading').first().waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('u-12 47');
    await page.getByRole('option', { name: /^\{ "u-12 47" \}/ }).waitFor();
    await page.keyboard.press('Enter'); // runs the offered search
    await page.getByText('No trace matches in this time range.').waitFor();
    await page.goto(url);
    await page.getByRole('main').getByRole('heading').first().waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('explore');
    await page.keyboard.press('Enter');
    await expect.poll(() => new URL(page.url()).pathname).toBe('/search');
    await page.getByRole('grid', { name: 'Traces' }).waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog').getByText(/keys/i).first().waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
    await page.context().close();
  });

  test('keys typed before the list of the jump box is loaded are carried out after', async () => {
    const { page } = await newPage(browser);
    const list = /\/assets\/dialogs-\w{8}\.js$/;
    let load = (): void => {};
    const held = new Promise<void>((resolve) => { load = resolve; });
    await page.route(list, async (route) => { await held; await route.continue(); });
    await page.goto(url);
    await page.getByRole('main').getByRole('heading').first().waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('gatew'); // g and w would be keys of the page
    await page.keyboard.press('Enter');
    await expect.poll(() => page.getByRole('dialog').getByRole('combobox').inputValue()).toBe('gatew');
    expect(new URL(page.url()).pathname).toBe('/');
    load();
    await expect.poll(() => new URL(page.url()).pathname).toBe('/services/gateway');
    await page.context().close();
  });

  test('Enter before the list of the jump box is loaded waits for the services that match', async () => {
    const { page } = await newPage(browser);
    let [load, answer] = [(): void => {}, (): void => {}];
    const loadable = new Promise<void>((resolve) => { load = resolve; });
    const answerable = new Promise<void>((resolve) => { answer = resolve; });
    const values = (text: boolean) => (address: URL) => address.pathname.endsWith('/values') && address.searchParams.has('text') === text;
    await page.route(/\/assets\/dialogs-\w{8}\.js$/, async (route) => { await loadable; await route.continue(); });
    await page.route(values(false), (route) => route.fulfill({ json: { data: { names: ['gatewatch'], more: true }, errors: null } }));
    await page.route(values(true), async (route) => { await answerable; await route.fulfill({ json: { data: { names: ['gatew'], more: false }, errors: null } }); });
    await page.goto(url);
    await page.getByRole('main').getByRole('heading').first().waitFor();
    const asked = page.waitForRequest((r) => values(true)(new URL(r.url())));
    await page.keyboard.press('Control+k');
    await page.keyboard.type('gatew');
    await page.keyboard.press('Enter');
    load();
    await asked;
    await page.getByRole('option', { name: /^gatewatch/ }).waitFor();
    expect(new URL(page.url()).pathname).toBe('/');
    answer();
    await expect.poll(() => new URL(page.url()).pathname).toBe('/services/gatew');
    await page.context().close();
  });

  test('Enter in the jump box is for the text before it, and for the chosen row', async () => {
    const { page } = await newPage(browser);
    let load = (): void => {};
    const held = new Promise<void>((resolve) => { load = resolve; });
    await page.route(/\/assets\/dialogs-\w{8}\.js$/, async (route) => { await held; await route.continue(); });
    await page.goto(url);
    await page.getByRole('main').getByRole('heading').first().waitFor();
    await page.keyboard.press('Control+k');
    const field = page.getByRole('dialog').getByRole('combobox');
    await page.keyboard.type('gat');
    await page.keyboard.press('Enter');
    await page.keyboard.type('ew');
    expect(await field.getAttribute('aria-activedescendant')).toBeNull();
    load();
    const row = page.getByRole('option', { name: /^gateway/, selected: true });
    await row.waitFor();
    expect(await field.getAttribute('aria-activedescendant')).toBe(await row.getAttribute('id'));
    await field.fill('a = b');
    await expect.poll(() => page.getByRole('option').count()).toBe(0);
    expect(await field.getAttribute('aria-activedescendant')).toBeNull();
    await page.keyboard.press('Enter');
    await field.fill('gatew');
    await row.waitFor();
    expect(new URL(page.url()).pathname).toBe('/');
    await page.keyboard.press('Enter');
    await expect.poll(() => new URL(page.url()).pathname).toBe('/services/gateway');
    await page.context().close();
  });

  test('a style sheet of the page that failed is loaded again; if that fails, too, the page says so', async () => {
    const { page } = await newPage(browser);
    const sheet = /\/assets\/overview-\w{8}\.css$/;
    let requests = 0;
    await page.route(sheet, (route) => (++requests === 1 ? route.abort() : route.continue()));
    await page.goto(url);
    await page.getByRole('main').getByRole('heading').first().waitFor();
    expect(requests).toBe(2);
    await page.route(sheet, (route) => route.fulfill({ status: 404 }));
    await page.reload();
    await page.getByRole('alert').getByText('This part of the page cannot be loaded.').waitFor();
    await page.context().close();
  });

  test('a jump box whose list cannot be loaded is closed, and tries again', async () => {
    const { page } = await newPage(browser);
    const list = /\/assets\/dialogs-\w{8}\.js$/;
    await page.route(list, (route) => route.abort());
    await page.goto(url);
    await page.getByRole('main').getByRole('heading').first().waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').getByRole('alert').getByText('This part of the page cannot be loaded.').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.unroute(list);
    await page.keyboard.press('Control+k');
    await page.getByRole('option', { name: /Explore/ }).first().waitFor();
    await page.context().close();
  });

  test('the skip link moves the focus into the page', async () => {
    const { page } = await newPage(browser);
    await page.goto(url + '/search');
    await page.getByRole('grid', { name: 'Traces' }).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await expect.poll(() => new URL(page.url()).pathname).toBe('/search');
    await expect.poll(() => page.evaluate(() => document.activeElement?.closest('main') !== null)).toBe(true);
    await page.context().close();
  });
});
