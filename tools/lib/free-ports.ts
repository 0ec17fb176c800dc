import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';

/** Below the ports that Linux, macOS and Windows give to connections: none of those takes one before it is used. */
const PORTS = { from: 10_000, to: 32_000 };

/**
 * `count` TCP ports of 127.0.0.1 that nobody listens on, all different. Another program that looks for a port may take one
 * before it is used.
 */
export async function freePorts(count: number): Promise<number[]> {
  const servers: Server[] = [];
  while (servers.length < count) {
    const server = await listen(randomInt(PORTS.from, PORTS.to)).catch(() => null);
    if (server !== null) servers.push(server);
  }
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map(close));
  return ports;
}

/** @throws Error that names the port when it can't be listened on */
export async function expectFreePort(port: number): Promise<void> {
  try {
    await close(await listen(port));
  } catch (error) {
    throw new Error(`port ${port} of 127.0.0.1 can't be used: ${(error as Error).message}`, { cause: error });
  }
}

async function listen(port: number): Promise<Server> {
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

async function close(server: Server): Promise<void> {
  server.close();
  await once(server, 'close');
}
