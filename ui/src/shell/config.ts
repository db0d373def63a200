import { effect, signal } from '@preact/signals';
import { ApiError, authorization, get, tenant } from '../api/client';
import type { Capabilities, Config } from '../api/types';

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
    get<Config>('config', {}, { signal: abort.signal }).then(
      (answer) => { config.value = answer.data; configError.value = null; },
      (e: unknown) => { if (e instanceof ApiError) configError.value = e; },
    );
    return () => abort.abort();
  });
}
