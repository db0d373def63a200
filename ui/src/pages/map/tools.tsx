import { Button, Chip, Segmented } from '../../shell/controls';
import { Menu } from '../../shell/floating';
import { count, rate } from '../../shell/format';
import { t, tn } from '../../shell/text';
import { FindService } from './find-service';
import { strong, type Graph } from './model';
import { thresholds, type Choice, type Metric, type Picture } from './picture';
import css from './tools.module.css';

const depths = [0, 1, 2, 3, 4];

/** What may be changed. */
export interface ToolsProps {
  all: Graph;
  /** There are services that the map leaves out. */
  cut: boolean;
  picture: Picture;
  choice: Choice;
  metric: Metric;
  onFocus: (name: string) => void;
  onChange: (change: Partial<Choice>) => void;
  onMetric: (metric: Metric) => void;
}

/** The tool row: search, focus, depth, weak edges, groups, and what the width of edges stands for. */
export function Tools({ all, cut, picture, choice, metric, onFocus, onChange, onMetric }: ToolsProps) {
  const { focus, depth, groups } = choice;
  const weak = picture.whole.edges.length - picture.graph.edges.length;
  return (
    <div class={css.tools} role="group" aria-label={t('What the map shows')}>
      <FindService nodes={all.nodes} cut={cut} onJump={onFocus} />
      {focus && <Chip label={t('focus')} onRemove={() => onChange({ focus: '', depth: 0 })}>{focus}</Chip>}
      {focus && (
        <Menu
          label={t('Depth')} trigger={(props) => <Button {...props} opens><span class={css.key}>{t('depth')}</span> {depth === 0 ? t('all') : depth}</Button>}
          items={depths.map((d) => ({ label: d === 0 ? t('all services') : tn(d, '{n} call away', 'up to {n} calls away'), checked: d === depth, onSelect: () => onChange({ depth: d }) }))}
        />
      )}
      <Menu
        label={t('Weak edges')} trigger={(props) => <Button {...props} opens><span class={css.key}>{t('edges from')}</span> {leastText(picture.least)}{weak > 0 && <span class={css.hint}>{t('{n} hidden', { n: count(weak) })}</span>}</Button>}
        items={thresholds.map((l) => ({ label: thresholdText(picture, l), checked: l === picture.least, onSelect: () => onChange({ least: l || -1 }) }))}
      />
      {groups.map((g) => <Chip key={g} label={t('open')} onRemove={() => onChange({ groups: groups.filter((x) => x !== g) })}>{g}</Chip>)}
      {picture.grouped && <span class={css.note}>{t('{services} in {n} groups and services', { services: tn(picture.table.nodes.length, '{n} service', '{n} services', { n: count(picture.table.nodes.length) }), n: count(picture.graph.nodes.length) })}</span>}
      <span class={css.grow} />
      <span class={css.legend}>{t('width: {what}, ⬢ at least 1 % fail, ▲ p95 at least 1.5 times the usual', { what: metricText[metric] })}</span>
      <Segmented label={t('Width of edges')} value={metric} onChange={onMetric} segments={[{ value: 'requests', label: t('Requests') }, { value: 'errors', label: t('Errors') }, { value: 'p95', label: 'p95' }]} />
    </div>
  );
}

const metricText: Record<Metric, string> = { requests: t('requests/s'), errors: t('failed requests/s'), p95: 'p95' };

function leastText(least: number): string {
  return least === 0 ? t('any rate') : t('{rate} requests/s', { rate: rate(least) });
}

/** A threshold, and how many edges it would hide. */
function thresholdText({ whole }: Picture, least: number): string {
  if (least === 0) return t('any rate: all edges');
  const hidden = whole.edges.length - strong(whole, least).edges.length;
  return tn(hidden, '{rate} requests/s: hides {n} edge', '{rate} requests/s: hides {n} edges', { rate: rate(least), n: count(hidden) });
}
