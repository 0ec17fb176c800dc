import { createServer as createWebServer } from 'node:http';
import { createSecureServer } from 'node:http2';
import { describe, expect, it } from '@jest/globals';
import { NativeConnection } from '@temporalio/worker';
import { selfSignedCertificate } from '../agent-api/self-signed-certificate';
import { grpcServer, listening } from './grpc-server';
import { whyNot } from '../../src/temporal/trouble';

// What is looked at without the error is the same for the client: connect.test.ts.
describe('what is made of the error that a connection of the worker gives', () => {
  it.each<[string, () => Promise<string>, string, RegExp]>([
    ['is starting', () => grpcServer(14, 'starting'), 'UNREACHABLE', /starting/],
    ['is the Web UI', () => listening(createWebServer((_, web) => web.end())), 'UNREACHABLE', /Web UI's/],
    ['denies permission', () => grpcServer(7), 'UNAUTHORIZED', /denies access .*TEMPORAL_NAMESPACE/],
    ['wants TLS', () => listening(createSecureServer(selfSignedCertificate())), 'MISCONFIGURED', /wants TLS/],
  ])('to a server that %s', async (_, server, code, message) => {
    const address = await server();
    const error: unknown = await NativeConnection.connect({ address }).catch((reason: unknown) => reason);
    const config = { address, namespace: 'agents', connection: { address }, secrets: [] };
    const trouble = await whyNot(error, config);
    expect(trouble).toMatchObject({ code, message: expect.stringMatching(message) });
  });
});
