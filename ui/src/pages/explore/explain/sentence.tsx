import type { Explanation } from '../../../api/explain';
import { count, duration, percent } from '../../../shell/format';
import { Mark } from '../../../shell/icons';
import { t, Text, tn } from '../../../shell/text';
import { keyName, valueName } from './words';
import css from './explain.module.css';

/** The answer in two or three sentences: how much longer, where, and with which attribute or calls. */
export function Sentence({ data }: { data: Explanation }) {
  const nothing = data.attributes.lines.length + data.time.lines.length + data.shape.lines.length === 0;
  if (nothing) return <h2 class={css.sentence}>{t('The selected traces do not differ from the others.')}</h2>;
  return <h2 class={css.sentence}><Durations data={data} /> <Cause data={data} /></h2>;
}

function Durations({ data }: { data: Explanation }) {
  const difference = data.selected.time - data.rest.time;
  const top = data.time.lines[0];
  const much = Math.abs(difference) > 0.02 * data.rest.time;
  if (!top && !much) return <>{t('Selected traces take about as long as the others.')}</>;
  const text = duration(Math.round(Math.abs(difference)));
  const change = difference > 0 ? <span class={css.grew}>{'▲ ' + text}</span> : <span class={css.shrank}>{'▼ ' + text}</span>;
  const operation = top && <b>{top.service} {top.name}</b>;
  if (top && top.share > 0.005 && much) {
    const values = { change, share: percent(Math.min(top.share, 1)), operation };
    return difference > 0 ? <Text of="Selected traces take {change} longer, {share} of it in {operation}." {...values} /> : <Text of="Selected traces take {change} less, {share} of it in {operation}." {...values} />;
  }
  if (much) return difference > 0 ? <Text of="Selected traces take {change} longer." change={change} /> : <Text of="Selected traces take {change} less." change={change} />;
  return <Text of="Selected traces take about as long as the others, but {operation} differs." operation={operation} />;
}

function Cause({ data }: { data: Explanation }) {
  const attribute = data.attributes.lines.find((l) => l.selected > l.rest) ?? data.attributes.lines[0];
  if (attribute) {
    const name = <b>{keyName(attribute)} = {valueName(attribute)}</b>;
    return <Text of="{selected} carry {attribute}, others {rest}." selected={percent(attribute.selected)} attribute={name} rest={percent(attribute.rest)} />;
  }
  const [shape] = data.shape.lines;
  if (!shape) return null;
  const path = <b>{shape.service} {shape.name}</b>;
  return <Text of="They call {path} {selected} times, others {rest} times." path={path} selected={shape.selected.calls.toFixed(1)} rest={shape.rest.calls.toFixed(1)} />;
}

/** What was examined and tested. */
export function Facts({ data }: { data: Explanation }) {
  const { selected, rest, attributes } = data;
  const all = selected.share === 1 && rest.share === 1;
  const side = (s: Explanation['rest']): string => (s.share < 1 ? t('{examined} of about {all}', { examined: count(s.traces), all: count(s.estimated) }) : count(s.traces));
  return (
    <p class={css.facts}>
      <span>{!all && <Mark kind="partial" size={13} label="" />}{t('read from {selected} selected and {others} other traces', { selected: side(selected), others: side(rest) })}</span>
      <span>{tn(attributes.tested, '{n} key tested, {differ} differ (1 % false discovery rate)', '{n} keys tested, {differ} differ (1 % false discovery rate)', { n: count(attributes.tested), differ: count(attributes.differ) })}</span>
      {attributes.traces < selected.traces + rest.traces && attributes.traces > 0 && <span>{t('attributes of {n} traces', { n: count(attributes.traces) })}</span>}
      {attributes.omitted && <span>{t('not all attribute keys were counted')}</span>}
    </p>
  );
}
