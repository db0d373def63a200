import { useState } from 'preact/hooks';
import type { Facets } from '../../../api/types';
import { canonical, fieldLabel } from '../../../query/field';
import { ValueInput } from '../../../query/value-input';
import { Button } from '../../../shell/controls';
import { Popover } from '../../../shell/floating';
import { t } from '../../../shell/text';
import { navigate } from '../../../shell/url';
import { useRequest } from '../../../shell/use-request';
import type { Run } from '../run';
import css from './groups.module.css';

const suggested = 8;
const common = ['service', 'name', 'kind', 'status', 'trace.rootName'];

/** Chooses the one or two keys of the groups. */
export function KeyChoice({ keys, run }: { keys: string[]; run: Run }) {
  const set = (next: string[]): void => navigate({ by: next }, { replace: true });
  return (
    <span class={css.keys} role="group" aria-label={t('Keys of the groups')}>
      <span>{t('Group by')}</span>
      {keys.map((key, i) => (
        <span key={key} class={css.key}>
          <KeyMenu label={fieldLabel(key)} title={t('Change the key {key}', { key: fieldLabel(key) })} keys={keys} run={run} onChoose={(name) => set(keys.map((k, at) => (at === i ? name : k)))} />
          {keys.length > 1 && <Button kind="quiet" icon="x" label={t('Remove the key {key}', { key: fieldLabel(key) })} onClick={() => set(keys.filter((_, at) => at !== i))} />}
        </span>
      ))}
      {keys.length < 2 && <KeyMenu label={t('Second key')} title={t('Add a second key')} keys={keys} run={run} onChoose={(name) => set([...keys, name])} />}
    </span>
  );
}

interface KeyMenuProps {
  label: string;
  title: string;
  /** Keys that are chosen already. */
  keys: string[];
  run: Run;
  onChoose: (key: string) => void;
}

function KeyMenu({ label, title, keys, run, onChoose }: KeyMenuProps) {
  return (
    <Popover label={title} class={css.surface} trigger={(props) => <Button {...props} opens title={title}>{label}</Button>}>
      {(close) => <Choices keys={keys} run={run} onChoose={(key) => { close(); onChoose(key); }} />}
    </Popover>
  );
}

function Choices({ keys, run, onChoose }: Pick<KeyMenuProps, 'keys' | 'run' | 'onChoose'>) {
  const [text, setText] = useState('');
  const { data } = useRequest<Facets>('compare', { q: run.q, start: run.start, end: run.end, sel_q: '{ error }', values: 40 }, { maxAge: 300_000 });
  const taken = new Set(keys.map(canonical));
  const found = (data?.facets ?? []).filter((f) => f.distinct > 1).map((f) => f.field);
  const offered = [...new Set([...common, ...found].map(canonical))].filter((f) => !taken.has(f)).slice(0, common.length + suggested);
  const done = (name: string): void => { if (name.trim() && !taken.has(canonical(name.trim()))) onChoose(name.trim()); };
  return (
    <div class={css.menu}>
      <ValueInput field="" rest="" label={t('Field')} placeholder={t('Any field')} value={text} period={() => ({ start: run.start, end: run.end })} onChange={setText} onDone={done} autofocus />
      {text === '' && <ul>{offered.map((f) => <li key={f}><Button kind="quiet" onClick={() => onChoose(f)}>{fieldLabel(f)}</Button></li>)}</ul>}
    </div>
  );
}
