import { effect } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { loginDismissed, loginRequired } from '../api/client';
import { loadConfig } from './config';
import { Dialog } from './dialog';
import { dispatchKey, useKeys } from './keys';
import { lazy } from './lazy';
import { announce, announcement } from './live-region';
import { Palette, PaletteList } from './palette';
import { applyTheme } from './preferences';
import { loadServices } from './service-color';
import { t } from './text';
import { applyTitle, title } from './title';
import { Toaster } from './toast';
import { chooseTheme, TopBar } from './top-bar';
import { route, startRouter, view } from './url';
import css from './shell.module.css';

const Help = lazy<{}>(() => import('./dialogs').then((m) => ({ default: m.Help })));
const Login = lazy<{}>(() => import('./dialogs').then((m) => ({ default: m.Login })));

/** Milliseconds after which the parts of dialogs are loaded: after the page, and usually before somebody opens a dialog. */
const warmUpDelay = 300;

/** The frame of every page: top bar, dialogs, shortcuts, and the page as main region. Embedded pages have only the main region. */
export function Shell({ children }: { children: ComponentChildren }) {
  const [dialog, setDialog] = useState<'palette' | 'help' | null>(null);
  const { embed } = view.value;
  const close = (): void => setDialog(null);
  useEffect(start, []);
  useEffect(() => {
    if (embed) return;
    const timer = setTimeout(PaletteList.preload, warmUpDelay);
    return () => clearTimeout(timer);
  }, [embed]);
  useKeys(t('Everywhere'), embed ? [] : [
    { keys: ['Mod k'], label: t('Jump to a trace, a service or a page'), run: () => setDialog('palette'), always: true },
    { keys: ['?'], label: t('Show all keys'), run: () => setDialog('help') },
  ]);
  return (
    <>
      {!embed && <a class={css.skip} href="#main" onClick={skip}>{t('Skip to the content')}</a>}
      {!embed && <TopBar onJump={() => setDialog('palette')} onHelp={() => setDialog('help')} onTheme={chooseTheme} />}
      <Main>{children}</Main>
      {dialog === 'palette' && <Palette onClose={close} />}
      {dialog === 'help' && <Dialog title={t('Keys')} onClose={close} class={css.help}><Help /></Dialog>}
      {loginRequired.value && !loginDismissed.value && <Login />}
      <Toaster />
      <div class="visually-hidden" role="status" aria-live="polite">{announcement}</div>
    </>
  );
}

function start(): () => void {
  const stops = [startRouter(), applyTheme(), applyTitle(), loadConfig(), loadServices(), () => removeEventListener('keydown', dispatchKey)];
  addEventListener('keydown', dispatchKey);
  return () => stops.forEach((stop) => stop());
}

/** A link to a fragment would be relative to the base, which is another page. */
function skip(e: Event): void {
  e.preventDefault();
  document.getElementById('main')!.focus();
}

/** The page. After a change of page, it gets the focus, and its title is announced. */
function Main({ children }: { children: ComponentChildren }) {
  const main = useRef<HTMLElement>(null);
  const place = JSON.stringify(route.value);
  const previous = useRef(place);
  useEffect(() => {
    if (previous.current === place) return;
    previous.current = place;
    main.current!.focus({ preventScroll: true });
    // The page sets its title when it is loaded.
    let first = true;
    const stop = effect(() => {
      const text = title.value;
      if (!first || text) announce(text);
      first = false;
    });
    const timer = setTimeout(stop, 1000);
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [place]);
  return <main id="main" ref={main} tabIndex={-1} class={css.main}>{children}</main>;
}
