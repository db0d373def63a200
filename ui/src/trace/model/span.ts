// Properties of single spans of a model.

import { serviceLabel } from '../../shell/service';
import { t } from '../../shell/text';
import { kindNames, type TraceModel } from './types';

/** Hexadecimal id of a span. */
export function spanID(model: TraceModel, span: number): string {
  return hexID(model.ids, span);
}

/** Hexadecimal form of the 8 bytes at 8*index. */
export function hexID(ids: Uint8Array, index: number): string {
  let text = '';
  for (let i = 8 * index; i < 8 * index + 8; i++) text += hexByte[ids[i]];
  return text;
}

const hexByte = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, '0'));

/** Index of the first span with a hexadecimal id (leading zeros may be missing), or -1. */
export function findSpan(model: TraceModel, id: string): number {
  if (!/^[0-9a-f]{1,16}$/i.test(id)) return -1;
  const wanted = id.padStart(16, '0').match(/../g)!.map((h) => parseInt(h, 16));
  const { ids } = model;
  for (let i = 0; i < ids.length; i += 8) {
    let k = 0;
    while (k < 8 && ids[i + k] === wanted[k]) k++;
    if (k === 8) return i / 8;
  }
  return -1;
}

/** Duration of a span in nanoseconds. */
export function durationOf(model: TraceModel, span: number): number {
  return model.end[span] - model.start[span];
}

/** Service to show for a span, as index in `services`: the called one if it sends no spans itself, else its own. */
export function shownService(model: TraceModel, span: number): number {
  return model.peer[span] >= 0 ? model.peer[span] : model.service[span];
}

/** Name of a service for display: spans without one come from an unknown service. */
export function serviceName(model: Pick<TraceModel, 'services'>, service: number): string {
  return serviceLabel(model.services[service]) || t('unknown service');
}

/** Name of the operation. */
export function operation(model: TraceModel, span: number): string {
  return model.names[model.name[span]];
}

/** Kind in words, or "". */
export function kindOf(model: TraceModel, span: number): string {
  return kindNames[model.kind[span]] ?? '';
}

/** Texts of the warnings of a span. */
export function warningsOf(model: TraceModel, span: number): string[] {
  return model.warningText.filter((_, i) => model.warningSpan[i] === span);
}

/** The span after `span` in a list of ascending spans, at the end the first; -1 if the list is empty. `step` -1 goes backwards. */
export function nextOf(list: Int32Array, span: number, step: 1 | -1 = 1): number {
  if (list.length === 0) return -1;
  const at = step > 0 ? list.findIndex((s) => s > span) : list.findLastIndex((s) => s < span);
  return at >= 0 ? list[at] : list[step > 0 ? 0 : list.length - 1];
}
