import { useState } from 'preact/hooks';
import { now, slowNow } from './clock';
import { Button, classes, Input, Segmented } from './controls';
import { Popover } from './floating';
import { zoneName } from './format';
import { Icon } from './icons';
import { zone, zoneChoice } from './preferences';
import { t } from './text';
import { instantText, lastName, parseRange, parseSpan, presets, rangeName, shiftRange, shortRangeName } from './time-input';
import { format, linked, navigate, view, type Range, type Route } from './url';
import css from './time-picker.module.css';

/** Links to a page with longer time ranges. */
export function WiderRanges({ of }: { of: Route }) {
  return <>{['24h', '7d'].map((span) => <a key={span} href={format(linked(of, { range: { from: `now-${span}`, to: 'now' } }))}>{lastName(span)}</a>)}</>;
}

/** Shows and changes the time range of the page: presets, an own span, two times, and the zone. */
export function TimePicker() {
  const { range } = view.value;
  const label = rangeName(range, zone.value, slowNow.value);
  return (
    <Popover
      label={t('Time range')} align="end" class={css.panel}
      trigger={(props) => (
        <Button {...props} opens icon="clock" class={css.trigger}>
          <span class="visually-hidden">{t('Time range: ')}</span>
          <span class={css.wide}>{label} <span class={css.zone}>{zoneName(zone.value, slowNow.value)}</span></span>
          <span class={css.narrow}>{shortRangeName(range, zone.value, slowNow.value)}</span>
        </Button>
      )}
    >
      {(close) => <Panel range={range} close={close} />}
    </Popover>
  );
}

function Panel({ range, close }: { range: Range; close: () => void }) {
  const choose = (r: Range): void => {
    close();
    navigate({ range: r });
  };
  return (
    <>
      <div class={css.presets} role="group" aria-label={t('Last')}>
        {presets.map((p) => {
          const current = range.from === `now-${p}` && range.to === 'now';
          return (
            <button key={p} type="button" class={classes(css.preset, current && css.current)} aria-pressed={current} onClick={() => choose({ from: `now-${p}`, to: 'now' })}>{lastName(p)}{current && <Icon name="check" size={14} />}</button>
          );
        })}
      </div>
      <div class={css.forms}>
        <SpanForm choose={choose} />
        <RangeForm range={range} choose={choose} />
        <div class={css.shift} role="group" aria-label={t('Move the range')}>
          <Button kind="quiet" icon="left" onClick={() => navigate({ range: shiftRange(range, -1, now.peek()) })}>{t('Earlier')}</Button>
          <Button kind="quiet" onClick={() => navigate({ range: shiftRange(range, 0, now.peek()) })}>{t('Twice as long')}</Button>
          <Button kind="quiet" onClick={() => navigate({ range: shiftRange(range, 1, now.peek()) })}>{t('Later')}<Icon name="right" /></Button>
        </div>
        <div class={css.zoneRow}>
          <span>{t('Time zone')}</span>
          <Segmented
            label={t('Time zone')} value={zone.value} onChange={setZone}
            segments={[{ value: 'utc', label: t('UTC') }, { value: 'local', label: t('Local, {zoneName}', { zoneName: zoneName('local', slowNow.value) }) }]}
          />
        </div>
      </div>
    </>
  );
}

/** The choice is stored; a zone in the URL follows it, because it would win. */
function setZone(z: 'utc' | 'local'): void {
  zoneChoice.value = z;
  if (view.value.zone) navigate({ zone: z }, { replace: true });
}

function SpanForm({ choose }: { choose: (r: Range) => void }) {
  const [text, setText] = useState('');
  const [wrong, setWrong] = useState(false);
  const submit = (e: Event): void => {
    e.preventDefault();
    const span = parseSpan(text);
    if (span) choose({ from: `now-${span}`, to: 'now' });
    else setWrong(true);
  };
  return (
    <form class={css.form} onSubmit={submit}>
      <label class={css.row}>
        <span>{t('Last')}</span>
        <Input value={text} placeholder={t('45m, 90 min, 2 days')} invalid={wrong} onInput={(e) => { setText(e.currentTarget.value); setWrong(false); }} />
      </label>
      <Button type="submit">{t('Apply')}</Button>
      {wrong && <p role="alert" class={css.wrong}>{t('Enter a number and a unit: 45m, 3h, 2d, 1w.')}</p>}
    </form>
  );
}

function RangeForm({ range, choose }: { range: Range; choose: (r: Range) => void }) {
  const z = zone.value;
  const [from, setFrom] = useState(() => instantText(range.from, z, now.peek()));
  const [to, setTo] = useState(() => instantText(range.to, z, now.peek()));
  const [wrong, setWrong] = useState<{ field: string; error: string } | null>(null);
  const submit = (e: Event): void => {
    e.preventDefault();
    const parsed = parseRange(from, to, z, Date.now());
    if ('range' in parsed) choose(parsed.range);
    else setWrong(parsed);
  };
  return (
    <form class={css.form} onSubmit={submit}>
      <div class={css.fields}>
        <label class={css.row}><span>{t('From')}</span><Input value={from} invalid={wrong?.field === 'from'} placeholder="14:06" onInput={(e) => { setFrom(e.currentTarget.value); setWrong(null); }} /></label>
        <label class={css.row}><span>{t('To')}</span><Input value={to} invalid={wrong?.field === 'to'} placeholder={t('now')} onInput={(e) => { setTo(e.currentTarget.value); setWrong(null); }} /></label>
      </div>
      <Button type="submit">{t('Apply')}</Button>
      {wrong && <p role="alert" class={css.wrong}>{wrong.error}</p>}
    </form>
  );
}
