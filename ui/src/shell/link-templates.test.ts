import { describe, expect, it } from 'vitest';
import type { LinkTemplate } from '../api/types';
import { fillLink, linksFor, type LinkSubject } from './link-templates';

const template = (url: string, rest: Partial<LinkTemplate> = {}): LinkTemplate => ({ name: 'Logs', url, on: 'span', key: '', requires: [], query: '', margin: 0, ...rest });
const subject = (attributes: Record<string, string> = {}, resource: Record<string, string> = {}): LinkSubject => {
  const list = (o: Record<string, string>) => Object.entries(o).map(([key, value]) => ({ key, type: 'string' as const, value }));
  return { traceId: '0af7', spanId: 'b7ad', service: 'cart & co', operation: 'GET /', start: 1_700_000_000_123_456_789n, end: 1_700_000_001_623_456_789n, attributes: list(attributes), resource: list(resource) };
};

describe('link templates', () => {
  it('fills in every placeholder', () => {
    const url = 'https://x.example/{traceId}/{spanId}?s={service}&o={operation}&a={attribute.user.id}&h={resource.host.name}';
    expect(fillLink(template(url), subject({ 'user.id': 'ann' }, { 'host.name': 'n1' }))).toBe('https://x.example/0af7/b7ad?s=cart%20%26%20co&o=GET%20%2F&a=ann&h=n1');
    expect(fillLink(template('https://x.example/?{start}-{end}-{duration}'), subject())).toBe('https://x.example/?1700000000123-1700000001623-1500');
    expect(fillLink(template('https://x.example/?{start:s}-{start:us}-{start:ns}-{duration:s}-{duration:ns}'), subject())).toBe('https://x.example/?1700000000-1700000000123456-1700000000123456789-1-1500000000');
    expect(fillLink(template('https://x.example/?{start:iso}'), subject())).toBe('https://x.example/?2023-11-14T22%3A13%3A20.123Z');
    expect(fillLink(template('mailto:{attribute.owner}?subject={operation}'), subject({ owner: 'a@b.example' }))).toBe('mailto:a%40b.example?subject=GET%20%2F');
  });

  it('fills in a search', () => {
    const search: LinkSubject = { query: '{ name = "GET /" }', start: 1_700_000_000_000_000_000n, end: 1_700_000_001_000_000_000n };
    const href = fillLink(template('https://x.example/?q={query}&panes=%7B%22query%22:{query:json}%7D&{start}-{end}-{duration:s}'), search);
    expect(href).toBe('https://x.example/?q=%7B%20name%20%3D%20%22GET%20%2F%22%20%7D&panes=%7B%22query%22:%22%7B%20name%20%3D%20%5C%22GET%20%2F%5C%22%20%7D%22%7D&1700000000000-1700000001000-1');
    expect(JSON.parse(new URL(href).searchParams.get('panes')!)).toEqual({ query: search.query });
    expect(fillLink(template('https://x.example/{traceId}'), search)).toBe('');
    expect(fillLink(template('https://x.example/{query:json}'), subject())).toBe('');
  });

  it('fills in a query, whose other braces stay, within wider times', () => {
    const loki = template('https://x.example/?q={query}&from={start}&to={end}&for={duration:s}', { query: '{service={service:json}, a="b"} |= `{{ contains {traceId:json} __line__ }}`', margin: 60e9 });
    const { searchParams } = new URL(fillLink(loki, subject()));
    expect(Object.fromEntries(searchParams)).toEqual({ q: '{service="cart & co", a="b"} |= `{{ contains "0af7" __line__ }}`', from: '1699999940123', to: '1700000061623', for: '121' });
    expect(fillLink(template('https://x.example/?q={query}', { query: 'id={attribute.a}' }), subject())).toBe('');
    expect(fillLink(template('https://x.example/?q={query}', { query: 'id={attribute.a}' }), subject({ a: 'x' }))).toBe('https://x.example/?q=id%3Dx');
  });

  it('puts values into other formats', () => {
    const filled = (placeholder: string, value: string): string => fillLink(template(`https://x.example/#{${placeholder}}`), subject({ a: value })).slice('https://x.example/#'.length);
    expect(decodeURIComponent(filled('attribute.a:json', 'a"b\\c\n'))).toBe('"a\\"b\\\\c\\n"');
    expect(decodeURIComponent(filled('attribute.a:rison', "it's!"))).toBe("'it!'s!!'");
    expect(filled('attribute.a:jsurl', 'a b/$é€.-_')).toBe('a*20b*2f*24*e9**20ac.-_');
    expect(filled('start:iso:jsurl', '')).toBe('2023-11-14T22*3a13*3a20.123Z');
  });

  it('shows a link only if it has all values', () => {
    expect(fillLink(template('https://x.example/{attribute.a}'), subject({ b: '1' }))).toBe('');
    expect(fillLink(template('https://x.example/{attribute.a}'), subject({ a: '' }))).toBe('');
    const conditional = template('https://x.example/', { requires: ['resource.a', 'attribute.b'] });
    expect(fillLink(conditional, subject({ b: '1' }))).toBe('');
    expect(fillLink(conditional, subject({ b: '1' }, { a: '2' }))).toBe('https://x.example/');
    expect(fillLink(template('https://x.example/{unknown}'), subject())).toBe('');
  });

  it('chooses by place and key', () => {
    const all = [template('https://a.example/', { name: 'A' }), template('https://b.example/', { name: 'B', on: 'trace' }), template('https://c.example/', { name: 'C', on: 'attribute', key: 'host' })];
    const names = (on: LinkTemplate['on'], key?: string): string[] => linksFor(all, on, subject(), key).map((l) => l.name);
    expect([names('span'), names('trace'), names('attribute', 'host'), names('attribute', 'user')]).toEqual([['A'], ['B'], ['C'], []]);
  });

  it.each([
    'javascript:alert(1)', '"><script>alert(1)</script>', "' onclick='alert(1)", 'a\r\nLocation: https://evil.example', '//evil.example', '@evil.example', '\\\\evil.example', '?x#y&z=1;%2e%2e/%0a',
    '\u0000\u202e', '\ud800', '../../admin', 'https://evil.example/', '\t\n',
  ])('leaves nothing dangerous of the value %j', (value) => {
    for (const before of ['https://x.example/', 'https://x.example/a?b=', 'https://x.example/#', 'https://x.example/a/']) {
      const href = fillLink(template(`${before}{attribute.a}`), subject({ a: value }));
      expect(href.startsWith(before)).toBe(true);
      expect(href.slice(before.length)).toMatch(/^[\w.~%-]+$/);
      const url = new URL(href);
      expect([url.origin, url.href.startsWith(before)]).toEqual(['https://x.example', true]);
      expect(decodeURIComponent(href.slice(before.length))).toBe(value === '\ud800' ? '\ufffd' : value);
    }
  });

  it('does not let a value lead to another folder, or a template to a script', () => {
    for (const value of ['.', '..']) expect(fillLink(template('https://x.example/a/{attribute.a}/b'), subject({ a: value }))).toBe('');
    for (const url of ['javascript:alert(1)', ' javascript:alert({traceId})', 'data:text/html,{traceId}', 'vbscript:x', 'file:///etc/passwd', '/relative', '{attribute.a}']) {
      expect(fillLink(template(url), subject({ a: 'javascript:alert(1)' }))).toBe('');
    }
  });
});
