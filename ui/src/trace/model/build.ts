// Builds the model of a trace from its outline.

import type { Outline } from '../../api/types';
import { decodeColumns } from './columns';
import { buildFacts } from './facts';
import { buildGroups } from './groups';
import { criticalPath } from './path';
import { idleTime, sentenceParts } from './sentence';
import { buildTree } from './tree';
import type { TraceModel } from './types';

/** Builds a model. `messages` are the errors of the answer. Throws an Error if the outline contradicts itself. */
export function buildModel(o: Outline, messages: string[], skew: boolean): TraceModel {
  const columns = decodeColumns(o, skew);
  const tree = buildTree(columns.parent, columns.flags);
  const base = { traceID: o.traceID, skew, spans: o.spans, services: o.services, names: o.names, ...columns, ...tree };
  const path = criticalPath(base);
  return { ...base, groups: buildGroups(base), path, idle: idleTime(path), sentence: sentenceParts(base, path), facts: buildFacts(base, o, messages) };
}
