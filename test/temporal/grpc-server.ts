import { once } from 'node:events';
import { createServer, type Http2SecureServer, type Http2Server } from 'node:http2';
import type { AddressInfo, Server, Socket } from 'node:net';
import { afterAll } from '@jest/globals';

const servers: Server[] = [];
const sockets: Socket[] = [];
afterAll(() => {
  for (const server of servers) server.close();
  // One that never reads does not notice that its client has gone.
  for (const socket of sockets) socket.destroy();
});

/** Has a server listen until the tests of the file are over. @returns its address */
export async function listen(server: Server | Http2Server | Http2SecureServer): Promise<string> {
  servers.push(server);
  server.on('connection', (socket: Socket) => sockets.push(socket));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** UNIMPLEMENTED, as a very old server answers whoever connects: it lets everybody in. */
export const UNIMPLEMENTED = 12;

/** Answers every call with a gRPC status, by its method; null for no answer at all. */
export function respondWithGrpcStatus<T extends Http2Server | Http2SecureServer>(
  server: T,
  statusOf: (method: string) => number | null,
  words = 'no',
): T {
  server.on('stream', (stream, { ':path': path = '' }) => {
    stream.on('error', () => undefined);
    const status = statusOf(path.split('/').at(-1) ?? '');
    if (status === null) return;
    const headers = { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': String(status) };
    stream.respond({ ...headers, 'grpc-message': words }, { endStream: true });
  });
  return server;
}

/** The address of a server that answers everything with one status. */
export function grpcServer(status: number, words?: string): Promise<string> {
  return listen(respondWithGrpcStatus(createServer(), () => status, words));
}
