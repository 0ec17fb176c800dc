import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { startDevServer, stripTemporalEnv } from '../../tools/lib/dev-server';
import { temporaryFolder } from '../harness/temporary-folder';
import { temporal } from '../harness/temporal';

const REAL = 'production.example:7233';
const home = temporaryFolder();

it('the dev server is not taken for another server that has the port', async () => {
  const { cli, address } = temporal();
  const port = Number(address.split(':')[1]);
  const words = `port ${port} of 127.0.0.1 can't be used: listen EADDRINUSE`;
  await expect(startDevServer({ cli, port })).rejects.toThrow(words);
});

it('a dev server that dies at its start is started three times, and says why', async () => {
  const [cli, log] = [path.join(home, 'dying'), path.join(home, 'starts')];
  // As Go does in a panic; the sixth start is of the real one.
  const program = `#!/bin/sh
echo start >> '${log}'
[ "$(grep -c . '${log}')" -gt 5 ] && exec '${temporal().cli}' "$@"
echo 'panic: the port was taken'; seq 1 100; exit 2`;
  await writeFile(cli, program, { mode: 0o755 });
  const words = /with exit code 2\. It said:\npanic: the port was taken\n1\n[^]*…\n91\n[^]*100$/;
  await expect(startDevServer({ cli })).rejects.toThrow(words);
  expect(await readFile(log, 'utf8')).toBe('start\n'.repeat(3));
  await (await startDevServer({ cli })).stop();
});

it('what tests and demo start never gets a server of the user: of a profile, or of TEMPORAL_ variables', async () => {
  // Where Linux and macOS keep the profiles.
  for (const folder of ['Library/Application Support', '.config']) {
    const temporalio = path.join(home, folder, 'temporalio');
    await mkdir(temporalio, { recursive: true });
    await writeFile(path.join(temporalio, 'temporal.toml'), `[profile.default]\naddress = "${REAL}"\n`);
  }
  const addressIn = (env: NodeJS.ProcessEnv) =>
    loadClientConnectConfig({ overrideEnvVars: env as Record<string, string> }).connectionOptions.address;
  for (const env of [{ HOME: home }, { HOME: home, TEMPORAL_ADDRESS: REAL, TEMPORAL_PROFILE: 'default' }]) {
    expect(addressIn(env)).toBe(REAL);
    expect(addressIn(stripTemporalEnv(env))).toBeUndefined();
    expect(Object.keys(stripTemporalEnv(env))).toEqual(['HOME', 'TEMPORAL_CONFIG_FILE']);
  }
});
