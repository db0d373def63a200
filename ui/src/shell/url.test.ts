import { describe, expect, it } from 'vitest';
import { emptyView, format, parse, type View } from './url';

const at = (path: string): View => parse(new URL('http://host' + path), '');

describe('url', () => {
  it('keeps every member of a view', () => {
    const v: View = {
      ...emptyView({ page: 'trace', id: '8d41f0c27be94a6e' }),
      q: '{ service = "a b" && .x =~ "y+&" }', range: { from: 'now-15m', to: '2026-11-22T10:00:00.000Z' }, zone: 'local', theme: 'dark', embed: true,
      base: 'day', against: 'week',
      of: 'spans', sel: { t0: 1, t1: 2, d0: 3, d1: 4 }, cols: ['span.a,b', 'resource.c%2C'], by: ['service', 'span.a,b'], sort: '-duration', limit: 50, tab: 'spans',
      span: '00f067aa0ba902b7', search: '{ error }', zoom: [0.25, 0.5], find: 'GET /', only: true, part: 'waiting:redis', min: 1000, fold: 0, root: '00f067aa0ba902b7', path: false, skew: false, idle: 'short', pins: ['http.route'], all: true, focus: 'a/b', depth: 2, least: 0.5, groups: ['shop, eu'], pick: ['a/b', 'x > y'],
    };
    expect(parse(new URL('http://host' + format(v, '')), '')).toEqual(v);
    expect(parse(new URL('http://host' + format(v, '/a/b')), '/a/b')).toEqual(v);
  });

  it.each(['/', '/search', '/trace/1', '/trace/1...2', '/services/a%2Fb%20c', '/services', '/dependencies', '/open', '/open/0af7', '/status', '/sampling', '/sampling?service=a%26b&operation=GET+%2F&trace=0af7', '/errors', '/nothing/here'])('keeps the route %s', (path) => {
    expect(format(at(path), '')).toBe(path);
  });

  it.each([
    ['/search?service=checkout', '{ service = "checkout" }'],
    ['/search?service=a&operation=GET%20%2F', '{ service = "a" && name = "GET /" }'],
    ['/search?service=a&operation=all&tags=%7B%22error%22%3A%22true%22%2C%22http.status_code%22%3A500%7D', '{ service = "a" && error && (.http.status_code = "500" || .http.status_code = 500) }'],
    ['/search?service=a&tag=user%3Ajo%3Ae', '{ service = "a" && .user = "jo:e" }'],
    ['/search?service=a&minDuration=1.5s&maxDuration=2m', '{ service = "a" && duration >= 1.5s && duration <= 2m }'],
    ['/search?service=a&tags=broken', '{ service = "a" }'],
    ['/search?service=a&q=%7B%7D', '{}'],
  ])('translates %s', (path, q) => {
    expect(at(path).q).toBe(q);
  });

  it('translates the time range and the find text of the original', () => {
    expect(at('/search?lookback=2h&start=1&end=2').range).toEqual({ from: 'now-2h', to: 'now' });
    expect(at('/search?lookback=custom&start=1714557600000000&end=1714557660000000').range).toEqual({ from: '2024-05-01T10:00:00.000Z', to: '2024-05-01T10:01:00.000Z' });
    expect(at('/search?service=a&limit=200')).toMatchObject({ q: '{ service = "a" }', limit: 200 });
    expect(at('/trace/1?uiFind=GET').find).toBe('GET');
    expect(at('/trace/1?uiEmbed=v0&uiTimelineHideMinimap=1')).toMatchObject({ embed: true, embedOptions: { uiTimelineHideMinimap: '1' } });
  });

  it('opens the service of /monitor', () => {
    expect(at('/monitor').route).toEqual({ page: 'services' });
    expect(at('/monitor?service=a%2Fb').route).toEqual({ page: 'service', name: 'a/b' });
    expect(at('/monitor?service=a&lookback=3600000').range).toEqual({ from: 'now-3600s', to: 'now' });
    expect(at('/monitor?timeframe=7200000&endTs=1700000000000').range).toEqual({ from: '2023-11-14T20:13:20.000Z', to: '2023-11-14T22:13:20.000Z' });
    expect(at('/monitor?lookback=7200000&from=now-5m').range).toEqual({ from: 'now-5m', to: 'now' });
    expect(at('/services/a?operation=GET%20%2F').operation).toBe('GET /');
    expect(format(at('/services/a?kind=calls&tab=errors'), '')).toBe('/services/a?kind=calls&tab=errors');
  });

  it('ignores bad values', () => {
    expect(at('/search?sel=1,2,x,4&zoom=1,0&fold=-5&min=1e9&limit=x&of=z&tz=mars')).toEqual(emptyView({ page: 'explore' }));
  });
});
