// Search in all of a trace that was read in full: also in attributes.

import type { Attribute, SpanDetail } from '../../api/types';
import { findWith } from '../model/find';
import type { TraceModel } from '../model/types';

/** Like findSpans, but words are also found in attributes, the status message, and attributes of events, links and resources. */
export function findInDetails(m: TraceModel, spans: SpanDetail[], q: string): Int32Array {
  const resources = new Map<Attribute[], string>();
  const texts = spans.map((s) => spanText(s, resources));
  return findWith(m, q, (word, hits) => {
    texts.forEach((text, i) => {
      if (text.includes(word)) hits[i] = 1;
    });
  });
}

function spanText(s: SpanDetail, resources: Map<Attribute[], string>): string {
  let resource = resources.get(s.resource);
  if (resource === undefined) resources.set(s.resource, (resource = attributesText(s.resource)));
  const more = [...s.events, ...s.links].map((x) => attributesText(x.attributes));
  return [s.statusMessage.toLowerCase(), attributesText(s.attributes), s.scope.name.toLowerCase(), ...more, resource].join('\n');
}

function attributesText(list: Attribute[]): string {
  return list.map((a) => `${a.key}=${a.value}`).join('\n').toLowerCase();
}
