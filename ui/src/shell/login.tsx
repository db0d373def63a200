import { useState } from 'preact/hooks';
import { boot } from '../api/boot';
import { authorization, clearCache, loginDismissed, loginRequired, tenant } from '../api/client';
import { Button, Input, Segmented } from './controls';
import { Dialog } from './dialog';
import { Mark } from './icons';
import { t } from './text';
import css from './login.module.css';

type Scheme = 'basic' | 'bearer';

/** What the server accepts. Behind a proxy that asks for credentials, the server itself may accept none. */
const schemes: Scheme[] = boot.auth.length > 0 ? boot.auth : ['basic', 'bearer'];
const labels: Record<Scheme, string> = { basic: t('User and password'), bearer: t('Bearer token') };

/** Header of credentials. Names and passwords are sent as UTF-8. */
export function authorizationHeader(scheme: Scheme, user: string, secret: string): string {
  if (scheme === 'bearer') return `Bearer ${secret.trim().replace(/^bearer\s+/i, '')}`;
  return `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(`${user}:${secret}`)))}`;
}

/** Asks for credentials after a 401, says why, and keeps them in memory only. */
export function Login() {
  const [scheme, setScheme] = useState<Scheme>(schemes[0]);
  const [user, setUser] = useState('');
  const [secret, setSecret] = useState('');
  const [tenantName, setTenantName] = useState(tenant.value);
  const reason = loginRequired.value;
  const needsTenant = /tenant/i.test(reason);
  const onlyTenant = needsTenant && boot.auth.length === 0;
  const submit = (e: Event): void => {
    e.preventDefault();
    clearCache();
    if (secret) authorization.value = authorizationHeader(scheme, user, secret);
    if (needsTenant) tenant.value = tenantName.trim();
    loginRequired.value = '';
  };
  return (
    <Dialog title={needsTenant ? t('Choose a tenant') : t('Sign in')} onClose={() => { loginDismissed.value = true; }} class={css.login}>
      <form class={css.form} onSubmit={submit}>
        <p class={css.reason}><Mark kind="warn" label="" /><span>{t('The server responded: {reason}', { reason })}</span></p>
        {needsTenant && <label class={css.row}><span>{t('Tenant')}</span><Input value={tenantName} onInput={(e) => setTenantName(e.currentTarget.value)} name="tenant" /></label>}
        {!onlyTenant && schemes.length > 1 && (
          <div class={css.row}>
            <span>{t('Method')}</span>
            <Segmented label={t('Method')} value={scheme} onChange={setScheme} segments={schemes.map((value) => ({ value, label: labels[value] }))} />
          </div>
        )}
        {!onlyTenant && scheme === 'basic' && <label class={css.row}><span>{t('User')}</span><Input value={user} onInput={(e) => setUser(e.currentTarget.value)} name="username" autocomplete="username" /></label>}
        {!onlyTenant && (
          <label class={css.row}>
            <span>{scheme === 'basic' ? t('Password') : t('Token')}</span>
            <Input type="password" value={secret} onInput={(e) => setSecret(e.currentTarget.value)} name="password" autocomplete={scheme === 'basic' ? 'current-password' : 'off'} />
          </label>
        )}
        <p class={css.note}>{t('The page keeps this in memory until it is reloaded or closed. It is sent only to this server.')}</p>
        <div class={css.buttons}><Button kind="primary" type="submit">{needsTenant && !secret ? t('Continue') : t('Sign in')}</Button></div>
      </form>
    </Dialog>
  );
}
