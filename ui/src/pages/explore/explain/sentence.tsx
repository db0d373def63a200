import type { Explanation } from '../../../api/explain';
import { count, duration, percent } from '../../../shell/format';
import { Mark } from '../../../shell/icons';
import { t, Text, tn } from '../../../shell/text';
import { attributeText, callText } from './words';
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
  const operation = top && <b>{top.service} {top.path < 0 ? top.name : callText(data.paths, top.path)}</b>;
  if (top && top.share > 0.005 && much) {
    const values = { change, share: percent(Math.min(top.share, 1)), operation };
    return difference > 0 ? <Text of="Selected traces take {change} longer, {share} of it in {operation}." {...values} /> : <Text of="Selected traces take {change} less, {share} of it in {operation}." {...values} />;
  }
  if (much) return difference > 0 ? <Text of="Selected traces take {change} longer." change={change} /> : <Text of="Selected traces take {change} less." change={change} />;
  return <Text of="Selected traces take about as long as the others, but {operation} differs." operation={operation} />;
}

/** The first input, and the second one if it differs by itself. */
function Cause({ data }: { data: Explanation }) {
  const [first, second] = data.attributes.lines.filter((l) => l.kind === 'input');
  if (!first) return <><Operation data={data} />{t('No version, flag, host, tenant or other input sets them apart.')}</>;
  const values = { selected: percent(first.selected), attribute: <b>{attributeText(first)}</b>, rest: percent(first.rest) };
  if (!second || second.with >= 0) return <Text of="{selected} have {attribute}, others {rest}." {...values} />;
  const also = { selected2: percent(second.selected), attribute2: <b>{attributeText(second)}</b>, rest2: percent(second.rest) };
  return <Text of="{selected} have {attribute}, others {rest}; independently, {selected2} have {attribute2}, others {rest2}." {...values} {...also} />;
}

const muchMore = 0.2;

/** The root operation that most of the selected traces have, if it is another one than that of the others. */
function Operation({ data }: { data: Explanation }) {
  const root = data.shape.lines.find((l) => data.paths.parent[l.path] < 0 && l.selected.traces > Math.max(0.5, l.rest.traces + muchMore));
  if (!root) return null;
  return <><Text of="{selected} are {operation}, others {rest}." selected={percent(root.selected.traces)} operation={<b>{root.service} {root.name}</b>} rest={percent(root.rest.traces)} /> </>;
}

/** What was examined and tested. */
export function Facts({ data }: { data: Explanation }) {
  const { selected, rest, attributes } = data;
  const all = selected.traces === selected.estimated && rest.traces === rest.estimated;
  const side = (s: Explanation['rest']): string => {
    if (s.traces === s.estimated) return count(s.traces);
    const numbers = { examined: count(s.traces), all: count(s.estimated) };
    return s.exact ? t('{examined} of {all}', numbers) : t('{examined} of about {all}', numbers);
  };
  return (
    <p class={css.facts}>
      <span>{!all && <Mark kind="partial" size={13} label="" />}{t('read from {selected} selected and {others} other traces', { selected: side(selected), others: side(rest) })}</span>
      {selected.least !== undefined && <span>{t('selected: {duration} and longer', { duration: duration(selected.least) })}</span>}
      <span>{tn(attributes.tested, '{n} key tested, {differ} differ (0.1 % false discovery rate)', '{n} keys tested, {differ} differ (0.1 % false discovery rate)', { n: count(attributes.tested), differ: count(attributes.differ) })}</span>
      {attributes.traces < selected.traces + rest.traces && attributes.traces > 0 && <span>{t('attributes of {n} traces', { n: count(attributes.traces) })}</span>}
      {attributes.omitted && <span>{t('not all attribute keys were counted')}</span>}
    </p>
  );
}
