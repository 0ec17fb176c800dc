import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';

/**
 * `count` TCP ports of 127.0.0.1 that nobody listens on, all different. Another program may take one before it is used,
 * so whoever uses them must be ready to ask again.
 */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => listen(0)));
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
