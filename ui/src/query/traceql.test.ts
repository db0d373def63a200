import { expect, it } from 'vitest';
import { traceQL } from './traceql';

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
