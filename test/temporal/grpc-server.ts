import { once } from 'node:events';
import { createServer, type Http2SecureServer, type Http2Server } from 'node:http2';
import type { AddressInfo, Server, Socket } from 'node:net';
import { afterAll } from '@jest/globals';

const servers: Server[] = [];
const sockets: Socket[] = [];
afterAll(() => {
  for (const server of servers) server.close();
  // A server that never reads from a socket does not notice that the client has closed it.
  for (const socket of sockets) socket.destroy();
});

/** Makes a server listen until the tests of the file have ended. @returns the server's address */
export async function listen(server: Server | Http2Server | Http2SecureServer): Promise<string> {
  servers.push(server);
  server.on('connection', (socket: Socket) => sockets.push(socket));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The status UNIMPLEMENTED, with which a very old Temporal server responds to a connecting client. The client then continues. */
export const UNIMPLEMENTED = 12;

/** Makes a server respond to every call with a gRPC status, and with the message in a second header. @param statusOf the status for a method, or null for no response */
export function respondWithGrpcStatus<T extends Http2Server | Http2SecureServer>(
  server: T,
  statusOf: (method: string) => number | null,
  message = 'no',
): T {
  server.on('stream', (stream, { ':path': path = '' }) => {
    stream.on('error', () => undefined);
    const status = statusOf(path.split('/').at(-1) ?? '');
    if (status === null) return;
    const headers = { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': String(status) };
    stream.respond({ ...headers, 'grpc-message': message, 'x-message': message }, { endStream: true });
  });
  return server;
}

/** Starts a server that responds to every call with one status. @returns the server's address */
export function grpcServer(status: number, message?: string): Promise<string> {
  return listen(respondWithGrpcStatus(createServer(), () => status, message));
}

/** Starts a server that responds only to GetSystemInfo, with a version of the Temporal server. @returns the server's address */
export function serverWithVersion(version: string): Promise<string> {
  const server = createServer();
  server.on('stream', (stream, { ':path': path = '' }) => {
    stream.on('error', () => undefined);
    const isInfo = path.endsWith('/GetSystemInfo');
    const status = isInfo ? '0' : String(UNIMPLEMENTED);
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': status }));
    stream.end(isInfo ? systemInfoMessage(version) : undefined);
  });
  return listen(server);
}

/** Returns a gRPC message whose protobuf field 1 (`server_version`) has the version. */
function systemInfoMessage(version: string): Buffer {
  const text = Buffer.from(version);
  const field = Buffer.concat([Buffer.from([0x0a, text.length]), text]);
  const header = Buffer.alloc(5);
  header.writeUInt32BE(field.length, 1);
  return Buffer.concat([header, field]);
}
