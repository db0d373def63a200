import { elapsed } from '../../shell/format';
import { t } from '../../shell/text';

/** The time since a moment, as RFC 3339: `2 h 05 m`, or with `ago`: `2 h 05 m ago`. */
export function Elapsed({ since, now, ago }: { since: string; now: number; ago?: boolean }) {
  const at = Date.parse(since);
  const time = elapsed(at, Math.max(at, now));
  return <time dateTime={since} title={since}>{ago ? t('{time} ago', { time }) : time}</time>;
}
