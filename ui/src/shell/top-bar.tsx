import { signal } from '@preact/signals';
import { useState } from 'preact/hooks';
import { boot } from '../api/boot';
import { clearCache, loginDismissed, loginRequired, tenant } from '../api/client';
import { slowNow } from './clock';
import { capable, config } from './config';
import { Button, classes, Input } from './controls';
import { Menu, Popover } from './floating';
import { count, short } from './format';
import { Icon, Logo, Mark } from './icons';
import { currentRate, hiddenFromTenants, ingest, troubled } from './ingest';
import { isMac } from './keys';
import { chooseLanguage, language, languages, type Language } from './language';
import { density, themeChoice, type Density, type ThemeChoice } from './preferences';
import { t, Text, tn } from './text';
import { TimePicker } from './time-picker';
import { link, navigate, view, visit, type Route } from './url';
import css from './top-bar.module.css';

type PageName = Route['page'];

const entries: { label: string; route: Route; pages: PageName[] }[] = [
  { label: t('Overview'), route: { page: 'overview' }, pages: ['overview'] },
  { label: t('Explore'), route: { page: 'explore' }, pages: ['explore', 'trace', 'compare'] },
  { label: t('Services'), route: { page: 'services' }, pages: ['services', 'service'] },
  { label: t('Errors'), route: { page: 'errors' }, pages: ['errors'] },
  { label: t('Map'), route: { page: 'map' }, pages: ['map'] },
];

/** Pages that show a time range. */
const timed = new Set<PageName>(['overview', 'explore', 'services', 'service', 'map', 'errors']);

/** Set by a page that shows no time range for now, because nothing is stored. */
export const withoutTime = signal(false);

/** The top bar of every page. */
export function TopBar({ onJump, onHelp, onTheme }: { onJump: () => void; onHelp: () => void; onTheme: (item: ThemeChoice) => void }) {
  const { page } = view.value.route;
  const live = page === 'explore' && view.value.live; // shows what arrives now
  return (
    <header class={css.bar}>
      <a class={css.brand} href={link({ page: 'overview' })} aria-label={t('tracing, overview')}><Logo /><span class={css.wide}>{t('tracing')}</span></a>
      <nav class={classes(css.nav, css.wide)} aria-label={t('Pages')}>
        {entries.map((e) => (
          <a key={e.label} href={link(e.route)} class={css.entry} aria-current={e.pages[0] === page ? 'page' : e.pages.includes(page) ? 'true' : undefined}>{e.label}</a>
        ))}
      </nav>
      <NarrowNav page={page} onHelp={onHelp} onTheme={onTheme} />
      <span class={css.space} />
      <button type="button" class={css.jump} onClick={onJump} aria-keyshortcuts={isMac ? 'Meta+K' : 'Control+K'} title={t('Jump to a trace, a service or a page')}>
        <Icon name="search" /><span class={css.jumpText}>{t('Trace ID, service or text')}</span><kbd>{isMac ? '⌘ K' : t('Ctrl K')}</kbd>
      </button>
      {timed.has(page) && !withoutTime.value && !live && <TimePicker />}
      {timed.has(page) && !withoutTime.value && capable('tail') && <LiveButton />}
      {(boot.tenantHeader || config.value?.capabilities.tenancy) && <TenantChooser />}
      {loginRequired.value && loginDismissed.value && <Button onClick={() => { loginDismissed.value = false; }}>{t('Sign in')}</Button>}
      <IngestRate />
      <span class={classes(css.tools, css.wide)}>
        <SettingsMenu onTheme={onTheme} />
        <Button kind="quiet" icon="help" label={t('Keys and help')} onClick={onHelp} />
      </span>
    </header>
  );
}

/** Shows traces as they arrive: those of the search, or of the service of the page. */
function LiveButton() {
  const { route, live } = view.value;
  const explore = route.page === 'explore';
  const q = route.page === 'service' ? `{ service = ${JSON.stringify(route.name)} }` : '';
  const toggle = (e: MouseEvent): void => {
    if (e.detail > 0) (e.currentTarget as HTMLElement).blur(); // after a click, Space pauses
    if (explore) navigate({ live: !live, sel: null });
    else visit(link({ page: 'explore' }, { live: true, q }));
  };
  return <Button kind="quiet" class={css.live} aria-pressed={explore && live} title={t('Shows traces as they arrive')} onClick={toggle}><i class={css.dot} aria-hidden="true" />{t('Live')}</Button>;
}

function SettingsMenu({ onTheme }: { onTheme: (item: ThemeChoice) => void }) {
  return (
    <Menu
      label={t('Settings')} align="end"
      trigger={(props) => <Button {...props} kind="quiet" icon="theme" label={t('Settings')} />}
      items={[
        ...themes.map(([value, label]) => ({ label, checked: themeChoice.value === value, onSelect: () => onTheme(value) })),
        ...densities.map(([value, label], i) => ({ label, group: i === 0, checked: density.value === value, onSelect: () => { density.value = value; } })),
        ...languageChoices.map(([value, label], i) => ({ label, group: i === 0, checked: language === value, onSelect: () => chooseLanguage(value) })),
      ]}
    />
  );
}

const themes: [ThemeChoice, string][] = [['system', t('System theme')], ['light', t('Light')], ['dark', t('Dark')]];

const densities: [Density, string][] = [['compact', t('Compact rows')], ['roomy', t('Comfortable rows')]];

const languageChoices = Object.entries(languages) as [Language, string][];

/** Name of a page for the menu of narrow windows. */
const names: Partial<Record<PageName, string>> = { trace: t('Trace'), compare: t('Compare'), open: t('Open'), status: t('Status'), sampling: t('Sampling') };

function NarrowNav({ page, onHelp, onTheme }: { page: PageName; onHelp: () => void; onTheme: (item: ThemeChoice) => void }) {
  const current = names[page] ?? entries.find((e) => e.pages.includes(page))?.label ?? t('Pages');
  const items = [
    ...entries.map((e) => ({ label: e.label, checked: e.pages[0] === page, onSelect: () => visit(link(e.route)) })),
    { label: t('Open a trace file'), checked: page === 'open', onSelect: () => visit(link({ page: 'open' })) },
    { label: t('Status'), checked: page === 'status', onSelect: () => visit(link({ page: 'status' })) },
    { label: t('Sampling'), checked: page === 'sampling', onSelect: () => visit(link({ page: 'sampling' })) },
    ...themes.map(([value, label]) => ({ label: t('Theme: {name}', { name: label }), checked: themeChoice.value === value, onSelect: () => onTheme(value) })),
    ...languageChoices.map(([value, label]) => ({ label, checked: language === value, onSelect: () => chooseLanguage(value) })),
    { label: t('Keys and help'), onSelect: onHelp },
  ];
  return (
    <nav class={css.narrow} aria-label={t('Pages')}>
      <Menu label={t('Pages')} items={items} trigger={(props) => <Button {...props} kind="quiet" opens class={css.page}>{current}</Button>} />
    </nav>
  );
}

/** Spans per second, with a link to the status. A process that receives nothing shows nothing. The place is kept until the rate is known. */
function IngestRate() {
  const { data, samples } = ingest.value;
  if (hiddenFromTenants() || (data && !data.receives)) return null;
  const perSecond = currentRate(samples);
  if (!data || perSecond === null) return <span class={classes(css.rate, css.wide, css.unknown)} aria-hidden="true">{t('{perSecond} spans/s', { perSecond: '000' })}</span>;
  const healthy = !troubled(data, slowNow.value);
  const title = tn(data.received, '{received} span received, {refused} refused, {dropped} dropped since the start', '{received} spans received, {refused} refused, {dropped} dropped since the start', { received: count(data.received), refused: count(data.refused), dropped: count(data.dropped) });
  return (
    <a class={classes(css.rate, css.wide)} href={link({ page: 'status' })} title={title}>
      {data.received > 0 && <Mark kind={healthy ? 'ok' : 'warn'} size={13} label={healthy ? t('healthy') : t('spans were refused or dropped')} />}
      <span>{t('{perSecond} spans/s', { perSecond: short(Math.round(perSecond)) })}</span>
    </a>
  );
}

function TenantChooser() {
  const [text, setText] = useState(tenant.value);
  return (
    <Popover
      label={t('Tenant')} align="end" class={css.tenant}
      trigger={(props) => <Button {...props} opens class={css.tenantButton} title={tenant.value ? t('Tenant {tenant}', { tenant: tenant.value }) : t('Choose a tenant')}>{tenant.value || t('Tenant')}</Button>}
    >
      {(close) => (
        <form
          class={css.tenantForm}
          onSubmit={(e) => {
            e.preventDefault();
            close();
            clearCache();
            tenant.value = text.trim();
          }}
        >
          <label><Text of="Name of the tenant{text}" text={<Input value={text} onInput={(e) => setText(e.currentTarget.value)} name="tenant" />} /></label>
          <Button kind="primary" type="submit">{t('Show')}</Button>
        </form>
      )}
    </Popover>
  );
}

/** Chooses a theme; a theme in the URL follows it, because it would win. */
export function chooseTheme(item: ThemeChoice): void {
  themeChoice.value = item;
  if (view.value.theme) navigate({ theme: item === 'system' ? '' : item }, { replace: true });
}
