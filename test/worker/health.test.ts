import http from 'node:http';
import { Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterEach, expect, it, jest } from '@jest/globals';
import type { ReadinessCheck } from '../../src/worker/readiness';
import { startHealthServer } from '../../src/worker/health';

const closes: (() => Promise<void>)[] = [];
afterEach(async () => {
  jest.restoreAllMocks();
  for (const close of closes.splice(0)) await close();
});

/** Starts a health server on a free port. @returns its port, Node's server, and the warnings that it logs */
async function start(checkReadiness: ReadinessCheck = () => Promise.resolve([]), host = '127.0.0.1') {
  const create = jest.spyOn(http, 'createServer');
  const warn = jest.fn<(message: string, fields?: object) => void>();
  const listener = { host, port: 0, isSetByOperator: true };
  const logger = { warn } as never;
  const { address = '', close } = await startHealthServer(listener, '1.2.3', checkReadiness, logger);
  closes.push(close);
  const port = Number(address.split(':').at(-1));
  const server = create.mock.results[0]?.value as http.Server;
  const get = (path: string, at = '127.0.0.1') => fetch(`http://${at}:${port}${path}`);
  return { address, get, server, warn, options: create.mock.calls[0]?.[0] };
}

it('closes connections without a complete request after 5 s, checked every second, so that these connections can’t block the probes', async () => {
  const limits = { requestTimeout: 5_000, headersTimeout: 5_000, connectionsCheckingInterval: 1_000 };
  expect((await start()).options).toMatchObject(limits);
});

it('an error of the listening server, such as a process without free file descriptors, is logged and does not end the process', async () => {
  const { server, warn, get } = await start();
  server.emit('error', new Error('accept EMFILE'));
  expect(warn.mock.calls).toEqual([
    [expect.stringContaining('could not accept'), { error: new Error('accept EMFILE') }],
  ]);
  expect((await get('/healthz')).status).toBe(200);
});

it('a readiness check that fails is a 500 and a line in the log, and the next request is served', async () => {
  const { get, warn } = await start(() => Promise.reject(new Error('a bug')));
  const response = await get('/readyz');
  expect([response.status, await response.json()]).toEqual([
    500,
    expect.objectContaining({ status: 'error' }),
  ]);
  expect(warn.mock.calls).toEqual([['a health check failed', { error: new Error('a bug') }]]);
  expect((await get('/healthz')).status).toBe(200);
});

it('a response that can’t be written is logged, and the next request is served', async () => {
  const { get, warn } = await start(() => Promise.resolve([1n as never]));
  await expect(get('/readyz')).rejects.toThrow('fetch failed');
  expect(warn.mock.calls).toEqual([['a health check failed', { error: expect.any(TypeError) }]]);
  expect((await get('/healthz')).status).toBe(200);
});

it('an error of a response is logged, and the response is still sent', async () => {
  const { get, warn } = await start();
  const end = Object.getOwnPropertyDescriptor(http.OutgoingMessage.prototype, 'end')?.value as () => unknown;
  jest.spyOn(http.ServerResponse.prototype, 'end').mockImplementationOnce(function (
    this: http.ServerResponse,
    ...args
  ) {
    this.emit('error', new Error('write EPIPE'));
    return Reflect.apply(end, this, args) as http.ServerResponse;
  });
  expect((await get('/healthz')).status).toBe(200);
  expect(warn.mock.calls).toEqual([['a health check failed', { error: new Error('write EPIPE') }]]);
});

it('on the host ::, responds at every loopback address of the machine, IPv6 and IPv4', async () => {
  const { get } = await start(undefined, '::');
  const loopback = Object.values(networkInterfaces()).flatMap((each = []) =>
    each.filter((one) => one.internal),
  );
  expect(loopback.map(({ family }) => family)).toContain('IPv4');
  for (const { family, address } of loopback)
    expect((await get('/healthz', family === 'IPv6' ? `[${address}]` : address)).status).toBe(200);
});

it('on the host :: of a machine whose kernel has no IPv6, listens on 0.0.0.0; another error is final', async () => {
  const failOnce = (message: string) =>
    jest.spyOn(Server.prototype, 'listen').mockImplementationOnce(function (this: Server) {
      queueMicrotask(() => this.emit('error', new Error(message)));
      return this;
    });
  failOnce('listen EAFNOSUPPORT: address family not supported :::0');
  const { address, get } = await start(undefined, '::');
  expect(address).toMatch(/^0\.0\.0\.0:\d+$/);
  expect((await get('/healthz')).status).toBe(200);
  failOnce('listen EADDRINUSE: address already in use :::0');
  await expect(start(undefined, '::')).rejects.toThrow(/\[::\]:0 can't be used \(listen EADDRINUSE/);
});
