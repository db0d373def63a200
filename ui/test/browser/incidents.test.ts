import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, newPage } from './browser.ts';
import { allInOne, Program } from './program.ts';
import { seeded, type Random } from './shop.ts';
import { sendSpans, spanID, traceID, type TestSpan } from './spans.ts';

// What the pages say of planted incidents, beside the truth. The numbers of many more are tested in Go: TestIncidents of extensions/query.

/** A request of a user: web calls checkout, which calls payment, or catalog, which calls search. */
interface Request {
  /** Minutes before the end of the data. */
  before: number;
  inner: string;
  tenant: string;
  random: Random;
}

interface Outcome {
  failed?: boolean;
  slower?: number;
  dropped?: boolean;
  version?: string;
}

interface Kind {
  name: string;
  hours?: number;
  trouble: (r: Request) => Outcome;
  /** What the pages must say; `{30}` is the time 30 minutes before the end, within 4 minutes. */
  overview: string;
  cards: string[];
  /** Page of the source, or of payment. */
  service: string;
  errors: string;
  explain?: string;
}

const hours = 4;
const perHour = 360;
const failing = (share: number, from: number, to = 0) => ({ before, inner, random }: Request): Outcome => ({ failed: inner === 'payment' && before <= from && before > to && random() < share });
const alike = 'No version, flag, host, tenant or other input sets them apart\\.$';
const usually = 'of requests, usually [\\d.]+(?: %)?';
const fails = `fails [\\d.]+ % ${usually}`;

const kinds: Kind[] = [
  {
    name: 'version', trouble: (r) => (r.inner === 'payment' && r.before <= 30 && r.random() < 0.6 ? { version: '2.0', failed: r.random() < 0.8 } : {}),
    overview: '^3 of 5 services are failing$', cards: [`^payment ${fails}, since {30}( when|;) version 2\\.0 appeared`], service: `^payment ${fails}, since {30}`,
    errors: ' 3 kinds: (\\d new|\\d growing).*; most in ', explain: 'have service\\.version = 2\\.0, others ',
  },
  {
    name: '40 min of each 2 h', trouble: (r) => failing(0.35, (r.before + 105) % 120 >= 80 ? 1e9 : -1)(r),
    overview: '^3 of 5 services are failing$', cards: [`^payment ${fails}, since {15}$`], service: `^payment ${fails}, since {15}`, errors: ' 3 kinds',
  },
  {
    name: 'ended', trouble: failing(0.45, 50, 15), overview: '^Nothing unusual now, 3 of 5 services have recovered$',
    cards: [`^payment failed [\\d.]+ % ${usually}, ended {15} after 3\\d min$`], service: '^payment failed .* ended {15} after 3\\d min', errors: ': \\d rose and ended; ', explain: alike,
  },
  {
    name: 'ended, and again', trouble: (r) => ({ failed: failing(0.5, 55, 35)(r).failed || failing(0.5, 12)(r).failed }), overview: '^3 of 5 services are failing$',
    cards: [`^payment ${fails}, since {12}$`, `^payment failed [\\d.]+ % ${usually}, ended {35} after \\d+ min$`], service: `^payment ${fails}, since {12}`, errors: ': ',
  },
  {
    name: 'two at once', trouble: (r) => ({ failed: r.before <= (r.inner === 'payment' ? 40 : 25) && r.random() < 0.45 }), overview: '^5 of 5 services are failing$',
    cards: [`^payment ${fails}, since {40}$`, `^search ${fails}, since {25}$`], service: `^payment ${fails}, since {40}`, errors: ': ', explain: alike,
  },
  {
    name: 'one tenant', trouble: (r) => ({ failed: r.tenant === 'globex' && failing(0.8, 40)(r).failed }), overview: '^3 of 5 services are failing$',
    cards: [`^payment ${fails}, since {40}$`], service: `^payment ${fails}, since {40}`, errors: ': ', explain: '100 % have tenant\\.id = globex, others ',
  },
  {
    name: 'slow', trouble: (r) => ({ slower: r.inner === 'search' && r.before <= 25 ? 8 : 1 }), overview: '^3 of 5 services are slower than usual$',
    cards: ['^search is slow: p95 \\d+ ms, usually \\d+(\\.\\d)? ms, since {25}$'], service: '^search is slow: p95 \\d+ ms, usually .*, since {25}', errors: '^No span failed$', explain: 'in search handle search',
  },
  {
    name: 'new service', trouble: (r) => (r.inner === 'search' ? { dropped: r.before > 20, failed: r.random() < 0.5 } : {}), overview: '^3 of 5 services are failing$',
    cards: ['^search fails [\\d.]+ % of requests$'], service: '^search fails [\\d.]+ % of requests', errors: ': \\d new; ',
  },
  {
    name: 'requests stop', trouble: (r) => ({ dropped: r.before < 25 }), overview: '^No requests since {25}$', cards: [], service: '^No requests since {25}\\.$', errors: '^No span failed$',
  },
  {
    name: 'few errors all the time', trouble: (r) => ({ failed: r.random() < 0.02 }), overview: '^Nothing unusual in 5 services$', cards: [], service: '^As usual: [\\d.]+ % of requests fail, p95 is ', errors: ', none new; most in ',
  },
];

/** The traces of a kind until `end`, in milliseconds since the epoch. */
function traces(kind: Kind, end: number, seed: number): TestSpan[] {
  const random = seeded(seed);
  const spans: TestSpan[] = [];
  for (let n = hours * perHour; n > 0; n--) {
    const before = (n - 0.5) * (60 / perHour);
    const inner = random() < 0.5 ? 'payment' : 'search';
    const tenant = ['acme', 'initech', 'globex', 'globex', 'acme'][Math.floor(random() * 5)];
    const { failed, dropped, slower = 1, version = '1.0' } = kind.trouble({ before, inner, tenant, random });
    if (dropped) continue;
    const took = (20 + 20 * random()) * slower;
    const id = traceID();
    let parentID: string | undefined;
    for (const [i, service] of ['web', inner === 'payment' ? 'checkout' : 'catalog', inner].entries()) {
      const span: TestSpan = {
        traceID: id, spanID: spanID(), parentID, service, name: `handle ${service}`, kind: 'server', start: end - before * 60_000 + i, duration: took + 20 - 10 * i, error: failed || undefined,
        attributes: i === 0 ? { 'tenant.id': tenant } : failed && i === 2 ? { 'error.type': 'Timeout' } : {}, resource: { 'service.version': service === inner ? version : '1.0' },
      };
      spans.push(span);
      parentID = span.spanID;
    }
  }
  return spans;
}

let browser: Browser;
let program: Program;
let url: string;
let end = 0;
const table: string[][] = [];

beforeAll(async () => {
  const tenancy = ['receivers::otlp::protocols::http::tenancy::header=x-org', 'extensions::query::http::tenancy::header=x-org'];
  [browser, program] = await Promise.all([connect(), Program.start(allInOne, tenancy)]);
  url = await program.url();
  end = Date.now();
  for (const [i, kind] of kinds.entries()) {
    const spans = traces(kind, end, i + 1);
    for (let n = 0; n < spans.length; n += 1000) await sendSpans(program, spans.slice(n, n + 1000), { 'x-org': `kind-${i}` });
  }
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
  for (const row of table) console.log(row.join(' | '));
});

/** A pattern, in which `{30}` matches the times up to 4 minutes from 30 minutes before the end. */
function pattern(text: string): RegExp {
  const times = (before: number): string => Array.from({ length: 9 }, (_, i) => new Date(end - (before + i - 4) * 60_000).toISOString().slice(11, 16)).join('|');
  return new RegExp(text.replaceAll(/\{(\d+)\}/g, (_, n) => `(?:.* )?(?:${times(Number(n))})`).replaceAll(' ', '\\s'), 'u');
}

async function read(of: () => Promise<string>, want: string): Promise<string> {
  let text = '';
  await expect.poll(async () => (text = (await of()).replaceAll('\u202f', ' ')), { timeout: 20_000 }).toMatch(pattern(want));
  return text;
}

test.each(kinds.map((k, i) => [k.name, k, i] as const))('%s', async (name, kind, i) => {
  const { page, problems } = await newPage(browser, { timezoneId: 'UTC', extraHTTPHeaders: { 'x-org': `kind-${i}` } });
  page.setDefaultTimeout(30_000);
  const heading = (): Promise<string> => page.getByRole('heading', { level: 1 }).innerText();
  const cards = page.getByRole('region', { name: 'Incidents' }).getByRole('heading', { level: 2 });
  await page.goto(url);
  const said = [await read(heading, kind.overview)];
  for (const [n, want] of kind.cards.entries()) said.push(await read(() => cards.nth(n).innerText(), want));
  expect((await cards.allInnerTexts()).slice(kind.cards.length)).toEqual([]);
  const source = kind.cards[0]?.match(/\^(\w+)/)?.[1] ?? 'payment';
  let explained = '';
  if (kind.explain) {
    await page.getByRole('region', { name: 'Incidents' }).getByRole('button', { name: /^Explain/ }).first().click();
    explained = await read(() => page.getByRole('heading', { level: 2, name: /[Ss]elected traces/ }).innerText(), kind.explain);
  }
  await page.goto(`${url}/services/${source}`);
  const service = await read(async () => (await page.getByRole('main').innerText()).split('\n').find((line) => pattern(kind.service).test(line)) ?? '', kind.service);
  await page.goto(`${url}/errors`);
  const errors = await read(heading, kind.errors);
  table.push([name, said.join('; '), service, errors, explained]);
  expect(problems).toEqual([]);
  await page.context().close();
});
