import { t } from '../shell/text';
import { parse } from '../shell/url';

/** Search and time range of a saved search in a few words. */
export function rangeText(url: string): string {
  const v = parse(new URL(url, 'http://localhost'), '');
  const from = /^now-(\d+[smhdw])$/.exec(v.range.from);
  const range = from && v.range.to === 'now' ? t('last {time}', { time: from[1] }) : t('{from} to {to}', { from: v.range.from, to: v.range.to });
  return [v.q || t('all traces'), range, v.tab].filter(Boolean).join(', ');
}
