import { expect, it } from 'vitest';
import { attributesOf, traceQL } from './traceql';

it.each([
  ['{ service = "web" && duration > 1s }', '{ resource.service.name = "web" && duration > 1s }'],
  ['{ error && !root } >> {root}', '{ status = error && nestedSetParent >= 0 } >> {nestedSetParent < 0}'],
  ['{ !error }', '{ status != error }'],
  ['{ status = error && kind != server }', '{ status = error && kind != server }'],
  ['{ exists(http.route) && !exists( span.a ) }', '{ .http.route != nil && span.a = nil }'],
  ['{ (http.status_code = "500" || http.status_code = 500) }', '{ (.http.status_code = "500" || .http.status_code = 500) }'],
  ['{ name = "500" && trace:id = "12" }', '{ name = "500" && trace:id = "12" }'],
  ['{ .a != "1.5" || !(.a = "x1") }', '{ .a != "1.5" || !(.a = "x1") }'],
  ['{ trace.duration > 1s } | select(service, http.route)', '{ trace:duration > 1s } | select(resource.service.name, .http.route)'],
  ['{ span."user id" = "a" } | rate() by (service) | topk(3)', '{ span."user id" = "a" } | rate() by (resource.service.name) | topk(3)'],
  ['{ parent.service.name != .b } | count() > 2', '{ parent.service.name != .b } | count() > 2'],
  ['', ''],
])('%s', (search, text) => expect(traceQL(search)).toEqual({ text, unknown: [] }));

it('names what TraceQL does not have', () => {
  expect(traceQL('{ "plain" && errorGroup = "x" && error = false }').unknown).toEqual(['"plain"', 'errorGroup', 'error']);
});

const renamed = new Map([['.http.method', ['.http.request.method', '.http.method']], ['span.n', ['span.m', 'span.n']]]);

it.each([
  ['{ http.method = "GET" && error }', '{ (.http.request.method = "GET" || .http.method = "GET") && status = error }'],
  ['{ !(.http.method = "GET") }', '{ !((.http.request.method = "GET" || .http.method = "GET")) }'],
  ['{ (span.n = "5" || span.n=5) && span.n > -1 }', '{ ((span.m = "5" || span.n = "5") || (span.m=5 || span.n=5)) && (span.m > -1 || span.n > -1) }'],
  ['{ exists(.http.method) && !exists(span.n) }', '{ (.http.request.method != nil || .http.method != nil) && (span.m = nil && span.n = nil) }'],
  ['{ span.n = nil }', '{ (span.m = nil && span.n = nil) }'],
  ['{ 2 * span.n > 3 && span.n > 2 * span.m && span.n }', '{ 2 * span.n > 3 && span.n > 2 * span.m && span.n }'],
  ['{ } | avg_over_time(span.n) by (.a, .http.method)', '{ } | avg_over_time(span.n) by (.a, .http.request.method, .http.method)'],
  ['{ } | by(span.n) | select(span.n)', '{ } | by(span.n) | select(span.m, span.n)'],
  ['{ span.n = -(1) && span.n =', '{ span.n = -(1) && span.n ='],
])('%s with all names of attributes', (search, text) => expect(traceQL(search, renamed).text).toBe(text));

it('lists the attributes of a search', () => {
  expect(attributesOf('{ http.method = ".a" && status = error && service.name = "b" && span."x y" > 1 } | rate() by (.http.method)')).toEqual(['.http.method', 'span."x y"']);
});
