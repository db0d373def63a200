// Names, numbers and sentences of an explanation.

import type { AttributeLine, AttributeName, CallPaths } from '../../../api/explain';
import { fieldLabel } from '../../../query/field';
import { duration, number, percent } from '../../../shell/format';
import { t } from '../../../shell/text';

/** Key of an attribute without its scope. */
export function keyName(a: AttributeName): string {
  return fieldLabel(a.field).replace(/^(span|resource)\./, '');
}

/** Value of an attribute for readers: `7`, `180 to 640`, `at least 1`, `any`. */
export function valueName(a: AttributeName): string {
  if (a.op === 'exists') return t('any');
  if (a.op === '=') return a.value || t('(empty)');
  const [low, high] = [a.low, a.high].map((n) => (n === undefined ? '' : number(n)));
  if (low && high) return low === high ? low : t('{low} to {high}', { low, high });
  return low ? t('at least {low}', { low }) : t('at most {high}', { high });
}

/** An attribute as text: `tenant.id = acme`. */
export function attributeText(a: AttributeName): string {
  return `${keyName(a)} = ${valueName(a)}`;
}

/** What an operation of a call path does, as on the page of a trace: `POST`, or `POST, waiting on northpay`. */
export function callText({ name, peer }: CallPaths, path: number): string {
  return peer[path] ? t('{operation}, waiting on {peer}', { operation: name[path], peer: peer[path] }) : name[path];
}

/** The small print of an attribute: its service, the deciles of a range, and how many traces could be compared. */
export function noteOf(a: AttributeLine): string {
  const parts = [a.service];
  if (a.deciles) parts.push(a.deciles[0] === a.deciles[1] ? t('decile {n} of the others', { n: a.deciles[0] }) : t('deciles {a} to {b} of the others', { a: a.deciles[0], b: a.deciles[1] }));
  if (a.compared < 0.95) parts.push(t('compared in the {share} of the selected traces that make this call', { share: percent(a.compared) }));
  return parts.filter(Boolean).join('; ');
}

/** The attributes that the same traces have, each once. */
export function sameOf(a: AttributeLine): string[] {
  return [...new Set(a.same.map(attributeText))].filter((text) => text !== attributeText(a));
}

/** A difference with arrow and sign: `▲ +1.12 s`, `▼ −9.00 ms`. */
export function differenceText(ns: number): string {
  const n = Math.round(ns);
  return n === 0 ? '0' : n > 0 ? `▲ +${duration(n)}` : `▼ −${duration(-n)}`;
}
