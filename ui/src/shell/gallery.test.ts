import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { LinkTemplate } from '../api/types';
import { fillLink, type LinkSubject } from './link-templates';

// The templates of the server's gallery, and the addresses that the UI makes of them: golden files, which tests of the server read too.
// UPDATE=1 writes the addresses.
const folder = new URL('../../../extensions/query/internal/uiapi/linktemplate/testdata/', import.meta.url);
const templates = JSON.parse(readFileSync(new URL('gallery.json', folder), 'utf8')) as LinkTemplate[];

const start = 1_760_000_000_123_456_789n;
const span = (service: string, operation: string, rest: Partial<LinkSubject> = {}): LinkSubject => (
  { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7', service, operation, start, end: start + 1_500_000_000n, attributes: [], resource: [], ...rest });
const subjects: LinkSubject[] = [
  span('checkout', 'GET /cart'),
  span('say "hi" \\ it\'s !important', 'a\nb`{{ }}` $x'),
  span('Zahlung 🙂 / ünï', 'POST', { attributes: [{ key: 'pyroscope.profile.id', type: 'string', value: 'f0e1d2c3b4a59687' }] }),
  span('a}b{c|d=e&f#g?h+i%20', '{traceId}', { start, end: start }),
  span('empty', '.', { traceId: '00000000000000001234567890abcdef', start: 0n, end: 1n }),
];
const search: LinkSubject = { query: '{ resource.service.name = "it\'s" && name =~ "a.*" }', start, end: start + 3_600_000_000_000n };

const links = templates.flatMap((template) => (template.on === 'search' ? [search] : template.on === 'service' ? subjects.map(({ service, start, end }) => ({ service, start, end })) : subjects).map((subject) => ({
  name: template.name, on: template.on, service: subject.service ?? '', url: fillLink(template, subject),
})));

test('the gallery makes the addresses of the golden file', () => {
  const file = new URL('urls.json', folder);
  if (process.env.UPDATE) writeFileSync(file, JSON.stringify(links, null, 1) + '\n');
  expect(links).toEqual(JSON.parse(readFileSync(file, 'utf8')));
});

test('only profiles need an attribute', () => {
  expect(links.filter((l) => l.url === '').map((l) => `${l.name} ${l.on}`)).toEqual(['Prometheus span', ...Array<string>(4).fill('Pyroscope span')]);
});
