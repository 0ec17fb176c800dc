import { expect, it, jest } from '@jest/globals';
import type * as connectModule from '../../src/client/connect';

/** Makes the plugins, by the names of their modules. */
const newPlugin: Record<string, () => object> = {};
// Jest can't import a module from the URL of a file.
jest.doMock('../../src/temporal/plugin-module', () => ({
  ...jest.requireActual<object>('../../src/temporal/plugin-module'),
  importPlugin: (module: string) => Promise.resolve().then(() => newPlugin[module]?.()),
}));

const { connectClient } = jest.requireActual<typeof connectModule>('../../src/client/connect');

const fail = () => {
  throw new Error('no');
};

/** Defines a plugin that counts its disposals. */
function countDisposals() {
  const dispose = jest.fn(() => Promise.resolve());
  newPlugin.first = () => ({
    name: 'first',
    configureClient: (options: object) => options,
    [Symbol.asyncDispose]: dispose,
  });
  return dispose;
}

it.each<[string, () => object]>([
  ['can’t be loaded', fail],
  ['fails when the connection is configured', () => ({ name: 'second', configureConnection: fail })],
  ['fails when the client is configured', () => ({ name: 'second', configureClient: fail })],
])('connect disposes of the first plugin if the second plugin %s', async (_, second) => {
  const dispose = countDisposals();
  newPlugin.second = second;
  const connecting = connectClient({ env: { FOLLOW_UP_PLUGINS: 'first,second' }, lazy: true });
  await expect(connecting).rejects.toMatchObject({ code: 'INVALID_CONFIGURATION' });
  expect(dispose).toHaveBeenCalledTimes(1);
});
