import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { Connection } from '@temporalio/client';
import { loadTemporalConfig } from '../../src/temporal/connection-config';
import { startDevServer, stripTemporalEnv } from '../../tools/lib/dev-server';
import { eventually } from '../../tools/lib/eventually';
import { temporaryFolder } from '../harness/temporary-folder';
import { temporal } from '../harness/temporal';

const REAL = 'production.example:7233';
const home = temporaryFolder();

it('rejects a port that another server uses', async () => {
  const { cli, address } = temporal();
  const port = Number(address.split(':')[1]);
  await expect(startDevServer({ cli, port })).rejects.toThrow(
    `EADDRINUSE: address already in use 127.0.0.1:${port}`,
  );
});

it('starts the server again if the server ends during its start, and serves the Web UI until the server is stopped', async () => {
  const [cli, log] = [path.join(home, 'fails-once'), path.join(home, 'starts')];
  // The first start fails, as if another program had taken a port.
  const program = `#!/bin/sh
echo start >> '${log}'
[ "$(grep -c . '${log}')" -gt 1 ] && exec '${temporal().cli}' "$@"
exit 2`;
  await writeFile(cli, program, { mode: 0o755 });
  const server = await startDevServer({ cli, webUi: true });
  // On a busy machine, a third start may be necessary.
  expect(await readFile(log, 'utf8')).toMatch(/^(start\n){2,3}$/);
  await eventually('the Web UI responds', () => fetch(server.uiUrl ?? ''), { until: ({ ok }) => ok });
  await server.stop();
  await server.stop();
  const { address } = server;
  await expect(Connection.connect({ address, connectTimeout: 1_000 })).rejects.toThrow();
  const second = await startDevServer({ cli, port: Number(address.split(':')[1]) });
  expect(second.address).toBe(address);
  await second.stop();
});

it('removes the user’s TEMPORAL_ variables and profiles from the environment of the tests and the demo', async () => {
  // Linux and macOS have the profiles in these folders.
  for (const folder of ['Library/Application Support', '.config']) {
    const temporalio = path.join(home, folder, 'temporalio');
    await mkdir(temporalio, { recursive: true });
    await writeFile(path.join(temporalio, 'temporal.toml'), `[profile.default]\naddress = "${REAL}"\n`);
  }
  const addressIn = (env: NodeJS.ProcessEnv) => loadTemporalConfig(env).address;
  for (const env of [{ HOME: home }, { HOME: home, TEMPORAL_ADDRESS: REAL, TEMPORAL_PROFILE: 'default' }]) {
    expect(addressIn(env)).toBe(REAL);
    expect(addressIn(stripTemporalEnv(env))).toBe('localhost:7233');
    expect(Object.keys(stripTemporalEnv(env))).toEqual(['HOME', 'TEMPORAL_CONFIG_FILE']);
  }
});
