import dns from 'node:dns';
import { isIP } from 'node:net';
import { jest } from '@jest/globals';

/** Makes every host name resolve to these addresses, until the test restores the mocks. */
export function resolveTo(...addresses: readonly string[]): void {
  const found = addresses.map((address) => ({ address, family: isIP(address) }));
  const lookup = (_hostname: string, _options: object, callback: (error: null, found: object) => void) => {
    setImmediate(callback, null, found);
  };
  jest.spyOn(dns, 'lookup').mockImplementation(lookup as never);
}
