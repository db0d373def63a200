import type { Change } from '../../api/types';
import type { TimeMark } from '../../charts/heatmap';
import { millis } from '../../shell/format';
import { t } from '../../shell/text';

const maxMarks = 3;

/** New versions of services as lines of a chart of a time range. Versions at about the same time share a line. Those of the services in `first` come first. */
export function marksOf(changes: Change[], from: number, to: number, first: string[]): TimeMark[] {
  const near = (to - from) / 25;
  const versions = changes.filter((c) => c.kind === 'version' && c.from !== '');
  versions.sort((a, b) => Number(first.includes(b.service)) - Number(first.includes(a.service)) || millis(b.at) - millis(a.at));
  const groups: { at: number; label: string; more: number }[] = [];
  for (const c of versions) {
    const at = millis(c.at);
    const group = groups.find((g) => Math.abs(g.at - at) < near);
    if (group) group.more++;
    else if (groups.length < maxMarks) groups.push({ at, label: `${c.service} ${c.to}`, more: 0 });
  }
  return groups.map(({ at, label, more }) => ({ at, label: more ? t('{label} and {more} more', { label, more }) : label }));
}
