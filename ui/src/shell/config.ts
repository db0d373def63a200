import { effect, signal } from '@preact/signals';
import { ApiError, authorization, get, tenant, unreadable } from '../api/client';
import type { Capabilities, Config } from '../api/types';

/** Milliseconds after which a failed request is repeated. */
const repeatAfter = 3000;

/** Configuration of the server; null until it has answered. */
export const config = signal<Config | null>(null);

/** Why the configuration could not be read. */
export const configError = signal<ApiError | null>(null);

/** Whether the server has a capability; true until it is known. */
export function capable(name: keyof Capabilities): boolean {
  return config.value?.capabilities[name] ?? true;
}

/** Reads the configuration, and again after a change of credentials or tenant. Returns a function that stops it. */
export function loadConfig(): () => void {
  return effect(() => {
    void [authorization.value, tenant.value];
    const abort = new AbortController();
    let timer = 0;
    const ask = (): Promise<void> => get<Config>('config', {}, { signal: abort.signal }).then(
      (answer) => { config.value = answer.data; configError.value = null; },
      (e: unknown) => {
        if (abort.signal.aborted) return;
        configError.value = e instanceof ApiError ? e : new ApiError(0, unreadable);
        if (configError.value.passing) timer = window.setTimeout(ask, repeatAfter);
      },
    );
    void ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  });
}
