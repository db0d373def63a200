// Names, numbers and sentences of an explanation.

import type { AttributeLine, AttributeName } from '../../../api/explain';
import { fieldLabel } from '../../../query/field';
import { duration } from '../../../shell/format';
import { t } from '../../../shell/text';

/** Key of an attribute without its scope. */
export function keyName(a: AttributeName): string {
  return fieldLabel(a.field).replace(/^(span|resource)\./, '');
}

/** Value of an attribute for readers: `7`, `180 to 640`, `at least 1`, `any`. */
export function valueName(a: AttributeName & Partial<AttributeLine>): string {
  if (a.op === 'exists') return t('any');
  if (a.op === '=') return a.value || t('(empty)');
  const [low, high] = [a.low, a.high].map((n) => (n === undefined ? '' : numberText(n)));
  if (low && high) return low === high ? low : t('{low} to {high}', { low, high });
  return low ? t('at least {low}', { low }) : t('at most {high}', { high });
}

/** A number of an attribute with at most four significant digits. */
export function numberText(n: number): string {
  const text = Number.isInteger(n) ? String(n) : String(Number(n.toPrecision(4)));
  return text.replace('-', '−').replace(/\B(?<!\.\d*)(?=(\d{3})+(?!\d))/g, ',');
}

/** The small print of an attribute: its service, the deciles of a range, and the attributes that say the same. */
export function noteOf(a: AttributeLine): string {
  const parts = [a.service];
  if (a.deciles) parts.push(a.deciles[0] === a.deciles[1] ? t('decile {n} of the others', { n: a.deciles[0] }) : t('deciles {a} to {b} of the others', { a: a.deciles[0], b: a.deciles[1] }));
  const keys = [...new Set(a.same.map(keyName))].filter((k) => k !== keyName(a));
  if (keys.length > 0) parts.push(t('same as {keys}', { keys: keys.length > 3 ? t('{keys} and {n} more', { keys: keys.slice(0, 2).join(', '), n: keys.length - 2 }) : keys.join(', ') }));
  return parts.filter(Boolean).join('; ');
}

/** A difference with arrow and sign: `▲ +1.12 s`, `▼ −9.00 ms`. */
export function differenceText(ns: number): string {
  const n = Math.round(ns);
  return n === 0 ? '0' : n > 0 ? `▲ +${duration(n)}` : `▼ −${duration(-n)}`;
}
