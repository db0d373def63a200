// Metrics queries: searches with a function that makes numbers over time of the spans, such as `{ error } | rate()`.

import { isOp, lex } from './lex';
import { fieldType } from './field';

const metricsFunction = /^(?:rate|compare|\w+_over_time)$/;

/** A metrics query in two parts, before the first function: the search for the spans, and the rest with the `|`. */
export interface MetricsQuery {
  set: string;
  rest: string;
  /** Whether it compares spans with others, which has no course over time. */
  compares: boolean;
  /** Whether it calculates with the numbers of functions. */
  calculates: boolean;
  /** Whether its functions are of durations, and whether its numbers are durations, both in seconds. */
  ofDurations: boolean;
  inSeconds: boolean;
  /** Whether its numbers can be added up over time. */
  adds: boolean;
}

/** The parts of a metrics query; null for any other text. */
export function metricsOf(text: string): MetricsQuery | null {
  const tokens = lex(text);
  const names = tokens.flatMap((t, i) => (isOp(tokens[i - 1], '|') && isOp(tokens[i + 1], '(') && metricsFunction.test(t.text) ? [i] : []));
  if (names.length === 0) return null;
  const at = tokens[names[0] - 1].begin;
  let depth = 0; // of braces: within them, conditions calculate
  const calculates = tokens.some((t) => {
    depth += Number(isOp(t, '{')) - Number(isOp(t, '}'));
    return depth === 0 && ['+', '-', '*', '/', '%', '^'].some((op) => isOp(t, op));
  });
  const ofDurations = !calculates && names.every((i) => fieldType(tokens[i + 2]?.text ?? '') === 'duration');
  return {
    set: text.slice(0, at).trim(), rest: text.slice(at), compares: names.some((i) => tokens[i].text === 'compare'),
    calculates, ofDurations, inSeconds: ofDurations && names.every((i) => tokens[i].text !== 'histogram_over_time'),
    adds: !calculates && names.every((i) => /^(?:count|sum|histogram)_/.test(tokens[i].text)),
  };
}
