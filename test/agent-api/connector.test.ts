import dns, { ADDRCONFIG } from 'node:dns';
import net, { Socket } from 'node:net';
import { afterEach, expect, it, jest } from '@jest/globals';
import { connectToFirst, createConnector, interleaveFamilies } from '../../src/agent-api/connector';
import { holdTimers } from '../harness/hold-timers';
import { AgentApiTest, JOB, JOB_KEY, MESSAGE } from './agent-api-under-test';
import { respondWith } from './misbehaving-server';
import { SlowServer } from './slow-server';

const agentApiTest = new AgentApiTest();
afterEach(() => {
  jest.restoreAllMocks();
  jest.useRealTimers();
});

/** Starts to connect to addresses. The test decides how each attempt ends. */
function begin(...addresses: string[]) {
  holdTimers();
  const sockets = new Map<string, Socket>();
  const open = ({ host }: { readonly host: string }) => {
    const socket = new Socket();
    sockets.set(host, socket);
    return socket;
  };
  const connected = connectToFirst(addresses, 443, 10_000, open as never);
  const socketOf = (address: string) => sockets.get(address) ?? new Socket();
  return {
    connected,
    socketOf,
    tried: () => [...sockets.keys()],
    refuse: (address: string) =>
      socketOf(address).emit('error', Object.assign(new Error('refused'), { code: 'ECONNREFUSED', address })),
  };
}

it('an attempt continues while the next addresses are tried, one each 250 ms, and the first connection is used', async () => {
  const { connected, socketOf, tried } = begin('far', 'blackhole', 'other');
  expect(tried()).toEqual(['far']);
  jest.advanceTimersByTime(249);
  expect(tried()).toEqual(['far']);
  jest.advanceTimersByTime(1);
  expect(tried()).toEqual(['far', 'blackhole']);
  jest.advanceTimersByTime(250);
  expect(tried()).toEqual(['far', 'blackhole', 'other']);
  jest.advanceTimersByTime(8_000);
  socketOf('far').emit('connect');
  expect(await connected).toBe(socketOf('far'));
  expect(tried().map((each) => socketOf(each).destroyed)).toEqual([false, true, true]);
});

it('a failed attempt starts the next attempt at once, and does not end the attempts that continue', async () => {
  const { connected, refuse, socketOf, tried } = begin('far', 'no-route', 'no-route-2');
  jest.advanceTimersByTime(250);
  refuse('no-route');
  expect(tried()).toEqual(['far', 'no-route', 'no-route-2']);
  refuse('no-route-2');
  socketOf('far').emit('connect');
  expect(await connected).toBe(socketOf('far'));
});

it('if every attempt fails, the error has the failure of each address', async () => {
  const { connected, refuse } = begin('one', 'two');
  refuse('one');
  refuse('two');
  await expect(connected).rejects.toMatchObject({ errors: [{ address: 'one' }, { address: 'two' }] });
});

it('after the timeout, every attempt is closed, and the error names the tried addresses', async () => {
  const { connected, socketOf } = begin('one', 'two');
  jest.advanceTimersByTime(10_000);
  const message = 'no connection within 10s (tried one, two)';
  await expect(connected).rejects.toMatchObject({ message, code: 'UND_ERR_CONNECT_TIMEOUT' });
  expect(['one', 'two'].map((each) => socketOf(each).destroyed)).toEqual([true, true]);
});

it('the addresses alternate between the families, starting with the resolver’s first address', () => {
  const [four, six] = [4, 6].map((family) => (address: string) => ({ address, family }));
  const addresses = [four?.('a'), four?.('b'), four?.('c'), six?.('A')].flatMap((each) => each ?? []);
  expect(interleaveFamilies(addresses)).toEqual(['a', 'A', 'b', 'c']);
  expect(interleaveFamilies([...addresses].reverse())).toEqual(['A', 'c', 'b', 'a']);
});

// Proves A3.
it.each(['POST', 'GET'])(
  'an address that is farther away than 250 ms is reached although the other address has no route, and a %s is sent once',
  async (method) => {
    const server = await SlowServer.start(JSON.stringify(JOB));
    const { resolveHost } = server;
    const client = agentApiTest.client({ baseUrl: `http://agents.example:${server.port}`, resolveHost });
    const outcome = method === 'GET' ? await client.getJob(JOB_KEY) : await client.sendMessage(MESSAGE);
    expect(outcome).toMatchObject({ job: JOB });
    expect(await server.listMethods()).toEqual([method]);
  },
);

// Proves A3.
it('the addresses of a host are tried in the alternating order', async () => {
  const tried: unknown[] = [];
  jest.spyOn(net, 'connect').mockImplementation((options: unknown) => {
    tried.push((options as net.TcpNetConnectOpts).host);
    const socket = new Socket();
    setImmediate(() => socket.emit('error', Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })));
    return socket;
  });
  const found = ['2001:db8::1', '2001:db8::2', '192.0.2.1'].map((address) => ({
    address,
    family: net.isIP(address),
  }));
  const connect = createConnector(10_000, () => Promise.resolve(found));
  const options = { hostname: 'agents.example', protocol: 'https:', port: '' };
  const error = await new Promise((resolve) => {
    connect(options, (...[failure]) => {
      resolve(failure);
    });
  });
  expect(error).toBeInstanceOf(AggregateError);
  expect(tried).toEqual(['2001:db8::1', '192.0.2.1', '2001:db8::2']);
});

it('the resolver returns both families of addresses, as far as this machine has them', async () => {
  const lookup = jest.spyOn(dns.promises, 'lookup').mockRejectedValue(new Error('not found'));
  const options = { hostname: 'agents.example', protocol: 'https:', port: '' };
  await new Promise((resolve) => {
    createConnector(10_000)(options, (...[failure]) => {
      resolve(failure);
    });
  });
  expect(lookup.mock.calls).toEqual([['agents.example', { all: true, hints: ADDRCONFIG }]]);
});

// Proves A3.
it('the second address of a host is used if the first one can’t be reached', async () => {
  agentApiTest.server.onRequest = respondWith(200, JOB);
  const { port } = new URL(agentApiTest.server.url);
  const addresses = ['2001:db8::1', '127.0.0.1'].map((address) => ({
    address,
    family: address.includes(':') ? 6 : 4,
  }));
  const resolveHost = () => Promise.resolve(addresses);
  const client = agentApiTest.client({ baseUrl: `http://agents.example:${port}`, resolveHost });
  expect(await client.sendMessage(MESSAGE)).toEqual({ verdict: 'accepted', job: JOB });
  expect(agentApiTest.server.requests).toHaveLength(1);
});
