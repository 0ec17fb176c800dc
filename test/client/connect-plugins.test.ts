import { createServer } from 'node:http2';
import { expect, it, jest } from '@jest/globals';
import type * as connectModule from '../../src/client/connect';
import { listen, respondWithGrpcStatus } from '../temporal/grpc-server';

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

it.each([true, false])(
  'connect ends with the reason of a signal that is aborted while the plugins are loaded, with lazy %s',
  async (lazy) => {
    const dispose = countDisposals();
    const caller = new AbortController();
    const reason = new Error('the caller has left');
    newPlugin.second = () => {
      caller.abort(reason);
      return { name: 'second', configureClient: (options: object) => options };
    };
    const calls: string[] = [];
    const silent = respondWithGrpcStatus(createServer(), (method) => (calls.push(method), null));
    const env = { TEMPORAL_ADDRESS: await listen(silent), FOLLOW_UP_PLUGINS: 'first,second' };
    const connecting = connectClient({ env, lazy, signal: caller.signal, timeout: 500 });
    await expect(connecting).rejects.toBe(reason);
    expect(calls).toEqual([]);
    expect(dispose).toHaveBeenCalledTimes(1);
  },
);
