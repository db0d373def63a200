// Searches for what a span shows.

import type { Attribute } from '../../api/types';
import { formatCondition } from '../../query/field';

/** Where an attribute is, as the search language names it. */
export type AttributeScope = 'span' | 'resource' | 'instrumentation' | 'event' | 'link';

/** Spans with the value of an attribute. */
export function withValue(scope: AttributeScope, a: Attribute): string {
  return search(formatCondition(`${scope}.${a.key}`, '=', a.value));
}

/** Spans of the same operation without the value of an attribute. */
export function withoutValue(scope: AttributeScope, a: Attribute, span: { service: string; name: string }): string {
  return search(...operation(span), formatCondition(`${scope}.${a.key}`, 'not', a.value));
}

/** Spans of the same operation; of a failed span, failed ones. */
export function likeSpan(span: { service: string; name: string; status: string }): string {
  return search(...operation(span), ...(span.status === 'error' ? ['error'] : []));
}

function operation(span: { service: string; name: string }): string[] {
  return [formatCondition('service', '=', span.service), formatCondition('name', '=', span.name)];
}

function search(...conditions: string[]): string {
  return `{ ${conditions.join(' && ')} }`;
}

/** The address of a value that is a web page, or "". Only http and https are followed. */
export function linkOf(value: string): string {
  if (!/^https?:\/\/[^\s<>"]+$/i.test(value)) return '';
  try {
    return new URL(value).href;
  } catch {
    return '';
  }
}
