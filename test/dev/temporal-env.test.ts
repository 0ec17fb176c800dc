import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { stripTemporalEnv } from '../../dev/temporal-env';

const REAL = 'production.example:7233';

describe('the environment of what tests and demo start', () => {
  let home: string;

  beforeAll(async () => {
    home = await mkdtemp(path.join(os.tmpdir(), 'temporal-env-test-'));
    // Where Linux and macOS keep the profiles.
    for (const folder of ['.config', 'Library/Application Support']) {
      const temporalio = path.join(home, folder, 'temporalio');
      await mkdir(temporalio, { recursive: true });
      await writeFile(path.join(temporalio, 'temporal.toml'), `[profile.default]\naddress = "${REAL}"\n`);
    }
  });
  afterAll(() => rm(home, { recursive: true, force: true }));

  function addressIn(env: NodeJS.ProcessEnv): string | undefined {
    const overrideEnvVars = Object.fromEntries(
      Object.entries(env).map(([name, value]) => [name, value ?? '']),
    );
    return loadClientConnectConfig({ overrideEnvVars }).connectionOptions.address;
  }

  it('does not lead to the server of the user’s profile', () => {
    expect(addressIn({ HOME: home })).toBe(REAL);
    expect(addressIn(stripTemporalEnv({ HOME: home }))).toBeUndefined();
  });

  it('does not lead to a server of TEMPORAL_ variables or of a profile that they name', () => {
    const file = path.join(home, '.config', 'temporalio', 'temporal.toml');
    const variables = {
      TEMPORAL_ADDRESS: REAL,
      TEMPORAL_NAMESPACE: 'production',
      TEMPORAL_API_KEY: 'secret',
      TEMPORAL_TLS: 'true',
      TEMPORAL_PROFILE: 'default',
      TEMPORAL_CONFIG_FILE: file,
    };
    const stripped = stripTemporalEnv({ HOME: home, ...variables });
    expect(addressIn(stripped)).toBeUndefined();
    expect(Object.keys(stripped)).toEqual(['HOME', 'TEMPORAL_CONFIG_FILE']);
  });

  it('leads to the server that is added to it', () => {
    expect(addressIn({ ...stripTemporalEnv({ HOME: home }), TEMPORAL_ADDRESS: '127.0.0.1:1' })).toBe(
      '127.0.0.1:1',
    );
  });

  it('keeps all else, and the place of the Temporal CLI', () => {
    const env = { PATH: '/bin', TEMPORAL_CLI_PATH: '/opt/temporal' };
    expect(stripTemporalEnv(env)).toMatchObject(env);
  });
});
