import { randomBytes } from 'node:crypto';

export const KEY_ACCESS = ['write', 'read-only'] as const;
export type KeyAccess = (typeof KEY_ACCESS)[number];

export interface ApiKey {
  readonly key: string;
  readonly access: KeyAccess;
}

/** What a request's `Authorization` header is worth. */
export type KeyState = KeyAccess | 'expired' | 'unknown' | 'none';

/** The sandbox's own throwaway API keys. */
export class ApiKeys {
  private readonly keys = new Map<string, KeyAccess | 'expired'>();

  constructor(keys: readonly ApiKey[]) {
    for (const { key, access } of keys) this.keys.set(key, access);
  }

  /** Makes a key: the service's prefix, an underscore, and 144 random bits. */
  create(access: KeyAccess): string {
    const key = `sandbox_${randomBytes(18).toString('hex')}`;
    this.keys.set(key, access);
    return key;
  }

  state(authorization: string | undefined): KeyState {
    const key = bearer(authorization);
    if (key === undefined) return 'none';
    return this.keys.get(key) ?? 'unknown';
  }

  /** Lets the key of a request expire; without one, every key. */
  expire(authorization?: string): void {
    const only = authorization === undefined ? undefined : bearer(authorization);
    for (const key of this.keys.keys()) {
      if (authorization === undefined || key === only) this.keys.set(key, 'expired');
    }
  }
}

/** The token of `Bearer <token>`; the scheme's case doesn't matter (RFC 9110, section 11.1). */
function bearer(authorization: string | undefined): string | undefined {
  return /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
}
