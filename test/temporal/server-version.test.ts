import { expect, it } from '@jest/globals';
import { Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { checkServerVersion, OLDEST_SERVER_VERSION } from '../../src/temporal/server-version';
import { FollowUpClient } from '../../src/entries/client';
import { grpcServer, serverWithVersion, UNIMPLEMENTED } from './grpc-server';

const TOO_OLD = new RegExp(
  `^UNSUPPORTED_SERVER: The Temporal server .*has the version "\\d+\\.\\d+\\.\\d+.*"\\. Upgrade it to version ${OLDEST_SERVER_VERSION} or newer\\.$`,
);

/** Returns the checked version, or the code and the message of the error. */
async function check(address: string): Promise<string | null> {
  const connection = Connection.lazy({ address });
  const checked = checkServerVersion(connection, address);
  const format = ({ code, message }: { code?: string; message: string }) => `${code}: ${message}`;
  return checked.catch((error: unknown) => format(error as Error)).finally(() => connection.close());
}

it.concurrent.each([OLDEST_SERVER_VERSION, '1.29.10', '1.32.0-rc.1', 'v2.0', '10.0.0'])(
  'a Temporal server with the version %s is accepted',
  async (version) => {
    expect(await check(await serverWithVersion(version))).toBe(version);
  },
);

it.concurrent.each(['1.29.0', '1.28.4', '1.9.99', '0.30.0-rc'])(
  'a Temporal server with the version %s is rejected, and the error names the oldest supported version',
  async (version) => {
    expect(await check(await serverWithVersion(version))).toMatch(TOO_OLD);
  },
);

it.concurrent.each(['', 'cloud'])(
  'a Temporal server with the unknown version %j is not rejected',
  async (version) => {
    expect(await check(await serverWithVersion(version))).toBeNull();
  },
);

it.concurrent.each([
  ['PERMISSION_DENIED', 7],
  ['UNIMPLEMENTED', UNIMPLEMENTED],
  ['NOT_FOUND', 5],
])(
  'if a gateway rejects the call with %s, the version is not known, and nothing is rejected',
  async (_, status) => {
    expect(await check(await grpcServer(status))).toBeNull();
  },
);

// Proves T7.
it('a client does not connect to a Temporal server that is too old', async () => {
  const address = await serverWithVersion('1.28.0');
  await expect(FollowUpClient.connect({ env: { TEMPORAL_ADDRESS: address } })).rejects.toMatchObject({
    code: 'UNSUPPORTED_SERVER',
    message: expect.stringContaining(`The Temporal server at ${address} has the version "1.28.0"`),
  });
});

it('a worker’s connection reads the same version', async () => {
  const address = await serverWithVersion('1.28.0');
  const connection = await NativeConnection.connect({ address });
  await expect(checkServerVersion(connection)).rejects.toMatchObject({ code: 'UNSUPPORTED_SERVER' });
  await connection.close();
});
