// Base paths, proxies, credentials, frames, and the placeholder: how the program serves the pages.

import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFileSync } from 'node:fs';
import type { Browser, Frame } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { connect, newPage } from './browser.ts';
import { allInOne, Program } from './program.ts';
import { sendSpans, spanID, traceID } from './spans.ts';

let browser: Browser;
const cleanups: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  browser = await connect();
});

afterAll(() => browser?.close());

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(settings: string[], files: Record<string, string> = {}): Promise<Program> {
  const program = await Program.start(allInOne, settings, files);
  cleanups.push(() => program.stop());
  return program;
}

async function serve(handler: (r: IncomingMessage, w: ServerResponse) => void): Promise<string> {
  const server: Server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => new Promise((resolve) => {
    server.closeAllConnections();
    server.close(resolve);
  }));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const span = (): Parameters<typeof sendSpans>[1] => [
  { traceID: traceID(), spanID: spanID(), service: 'shop', name: 'GET /cart', kind: 'server', start: Date.now() - 1000, duration: 12 },
];

test('pages work below a base path', async () => {
  const program = await start(['extensions::query::base_path=/tracing']);
  await sendSpans(program, span());
  const { page, problems } = await newPage(browser);
  await page.goto((await program.url()) + '/tracing/search?q=%7B%7D');
  await page.getByRole('navigation').first().getByRole('link').first().click();
  await page.waitForURL((url) => url.pathname === '/tracing/');
  await page.getByText('shop').first().waitFor();
  expect(problems).toEqual([]);
});

test('pages work behind a proxy that removes a prefix', async () => {
  const program = await start([]);
  await sendSpans(program, span());
  const target = new URL(await program.url());
  const proxy = await serve((r, w) => {
    if (!r.url!.startsWith('/ops/')) return void w.writeHead(404).end();
    const headers = { ...r.headers, 'x-forwarded-prefix': '/ops' };
    r.pipe(request({ host: target.hostname, port: target.port, path: r.url!.slice(4), method: r.method, headers }, (answer) => {
      w.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(w);
    }));
  });
  const { page, problems } = await newPage(browser);
  await page.goto(proxy + '/ops/');
  await page.getByText('shop').first().waitFor();
  expect(problems).toEqual([]);
});

test('the page asks for credentials once and keeps them in memory', async () => {
  const program = await start(['extensions::query::http::auth::bearer_tokens_file=${DATA}/tokens'], { tokens: 'secret-token\n' });
  await sendSpans(program, span());
  const { page } = await newPage(browser);
  const challenges: (string | undefined)[] = [];
  page.on('response', (r) => {
    if (r.status() === 401) challenges.push(r.headers()['www-authenticate']);
  });
  await page.goto((await program.url()) + '/');
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Token').fill('wrong');
  await dialog.getByRole('button', { name: 'Sign in' }).click();
  await dialog.getByText('invalid credentials').waitFor();
  await dialog.getByLabel('Token').fill('secret-token');
  await dialog.getByRole('button', { name: 'Sign in' }).click();
  await dialog.waitFor({ state: 'detached' });
  await page.getByText('shop').first().waitFor();
  expect(new Set(challenges)).toEqual(new Set(['Bearer']));
  const stored = await page.evaluate(() => JSON.stringify([localStorage, sessionStorage, document.cookie, location.href]));
  expect(stored).not.toContain('secret');
});

test('a server with passwords does not make the browser open its own dialog', async () => {
  const hash = '$2a$04$nkIAvl7FHIuB9Zk4UhVYx.4XtwO9x1mS6U9zTnOVbOYWZ6pxfkTUy';
  const program = await start(['extensions::query::http::auth::htpasswd_file=${DATA}/users'], { users: `ann:${hash}\n` });
  const { page } = await newPage(browser);
  const challenged = page.waitForResponse((r) => r.status() === 401);
  await page.goto((await program.url()) + '/');
  expect((await challenged).headers()['www-authenticate']).toBe('X-Basic realm="tracing"');
  await page.getByRole('dialog').getByLabel('Password').waitFor();
  const direct = await fetch((await program.url()) + '/api/services');
  expect(direct.headers.get('www-authenticate')).toBe('Basic realm="tracing"');
});

test('the page asks for the tenant where tenants are separated', async () => {
  const program = await start(['receivers::otlp::protocols::http::tenancy::header=x-org', 'extensions::query::http::tenancy::header=x-org']);
  await sendSpans(program, span(), { 'x-org': 'acme' });
  await sendSpans(program, span().map((s) => ({ ...s, service: 'rival' })), { 'x-org': 'other' });
  const { page } = await newPage(browser);
  await page.goto((await program.url()) + '/');
  const dialog = page.getByRole('dialog', { name: 'Choose a tenant' });
  await dialog.getByLabel('Tenant').fill('acme');
  await dialog.getByRole('button', { name: 'Continue' }).click();
  await dialog.waitFor({ state: 'detached' });
  await page.getByText('shop').first().waitFor();
  await page.getByText('What the process receives from all tenants is not shown to tenants.').waitFor();
  expect(await page.getByText('rival').count()).toBe(0); // the service of another tenant
  await page.getByRole('main').getByRole('link', { name: 'Status' }).click();
  await page.getByRole('heading', { name: 'All components work; counters across tenants are not shown to tenants' }).waitFor();
  expect(await page.getByText('No span received').count()).toBe(0);
  await page.getByRole('navigation').first().getByRole('link', { name: 'Explore' }).click();
  await page.getByRole('grid', { name: 'Traces' }).getByText('GET /cart').waitFor();
  expect(await page.getByText('rival').count()).toBe(0);
});

test('a tenant that the server does not know is refused with the reason', async () => {
  const program = await start(['receivers::otlp::protocols::http::tenancy::header=x-org', 'extensions::query::http::tenancy::header=x-org', 'extensions::query::http::tenancy::tenants=[acme]']);
  await sendSpans(program, span(), { 'x-org': 'acme' });
  const { page } = await newPage(browser);
  await page.goto((await program.url()) + '/');
  const dialog = page.getByRole('dialog', { name: 'Choose a tenant' });
  await dialog.getByLabel('Tenant').fill('other');
  await dialog.getByRole('button', { name: 'Continue' }).click();
  await dialog.getByText('unknown tenant').waitFor();
  await dialog.getByLabel('Tenant').fill('acme');
  await dialog.getByRole('button', { name: 'Continue' }).click();
  await page.getByText('shop').first().waitFor();
});

test('pages of other origins embed the UI only where the configuration allows it', async () => {
  let inner = '';
  const outer = await serve((_r, w) => w.setHeader('content-type', 'text/html').end(`<iframe src="${inner}"></iframe>`));
  const embed = async (settings: string[]): Promise<Frame> => {
    inner = (await (await start(settings)).url()) + '/search';
    const { page } = await newPage(browser);
    await page.goto(outer);
    return page.frames()[1];
  };
  const refused = await embed([]);
  await expect.poll(() => refused.url()).toBe('chrome-error://chromewebdata/'); // the browser's page about the refusal
  expect(await refused.getByRole('main').count()).toBe(0);
  const allowed = await embed([`extensions::query::ui::frame_ancestors=[${outer}]`]);
  await allowed.getByRole('main').waitFor();
});

test('the placeholder counts received spans', async () => {
  const files: Record<string, string> = {};
  for (const name of ['placeholder.html', 'placeholder.css', 'placeholder.js', 'placeholder.svg']) {
    files[name === 'placeholder.html' ? 'index.html' : name] = readFileSync(new URL(`../../../internal/webui/${name}`, import.meta.url), 'utf8');
  }
  const program = await start(['extensions::query::ui::path=${DATA}'], files);
  const { page, problems } = await newPage(browser);
  await page.goto((await program.url()) + '/');
  await page.getByText('0 spans received').waitFor();
  await page.getByText('Waiting for the first span.').waitFor();
  await sendSpans(program, span());
  await page.getByText('1 span received').waitFor();
  expect(problems).toEqual([]);
  await page.getByRole('link', { name: 'api/services' }).click();
  await page.getByText('"shop"').waitFor();
});
