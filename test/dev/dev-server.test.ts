import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import {
  type DevServer,
  type DevServerOptions,
  startDevServer,
  stripTemporalEnv,
} from '../../dev/dev-server';
import { expectGone } from '../harness/gone';
import { temporal } from '../harness/temporal';

const REAL = 'production.example:7233';

const PHASE = defineSearchAttributeKey('FollowUpPhase', 'KEYWORD');

describe('the dev server', () => {
  const servers: DevServer[] = [];
  const connections: Connection[] = [];
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'dev-server-test-'));
  });
  afterEach(async () => {
    await Promise.all(connections.splice(0).map((connection) => connection.close()));
    await Promise.all(servers.splice(0).map((server) => server.stop()));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  async function start(options: Omit<DevServerOptions, 'cli'> = {}): Promise<DevServer> {
    const server = await startDevServer({ cli: temporal().cli, ...options });
    servers.push(server);
    return server;
  }

  async function clientOf(server: DevServer): Promise<Client> {
    const connection = await Connection.connect({ address: server.address });
    connections.push(connection);
    return new Client({ connection, namespace: server.namespace });
  }

  it('keeps its workflows in the file over a crash and a restart at the same address', async () => {
    const databaseFile = path.join(folder, 'kept.sqlite');
    const first = await start({ databaseFile, searchAttributes: true });
    const before = await clientOf(first);
    await before.workflow.start('any', { workflowId: 'kept', taskQueue: 'q' });
    first.kill();
    expect(await first.exited).toEqual({ code: null, signal: 'SIGKILL' });

    const second = await start({ databaseFile, searchAttributes: true, port: first.port });
    expect(second.address).toBe(first.address);
    const after = await clientOf(second);
    const description = await after.workflow.getHandle('kept').describe();
    expect(description.status.name).toBe('RUNNING');
  });

  it('is gone when stop() returns', async () => {
    const server = await start();
    await server.stop();
    await expectGone(server.pid, 0);
  });

  it('is gone within seconds after its parent was killed with SIGKILL', async () => {
    const script = path.resolve(__dirname, 'parent.ts');
    const parent = spawn(process.execPath, ['--import', 'tsx', script, 'dev-server', temporal().cli], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(createInterface(parent.stdout), 'line')) as [string];
    parent.kill('SIGKILL');
    // Its guard gives it ten seconds to end by itself.
    await expectGone(Number(line), 15_000);
  });

  it('that dies at its start is an error with its own words', async () => {
    const databaseFile = path.join(folder, 'missing', 'x.sqlite');
    await expect(start({ databaseFile })).rejects.toThrow(
      /^the Temporal dev server ended at its start with exit code 1\. It said:\n.*failed checking dir for database file/,
    );
  });

  it('that is not the Temporal CLI is an error with its name', async () => {
    await expect(startDevServer({ cli: '/nowhere/temporal' })).rejects.toThrow(
      "can't start /nowhere/temporal",
    );
  });

  it('is not taken for another server that has the port', async () => {
    const first = await start();
    await expect(start({ port: first.port })).rejects.toThrow(
      `port ${first.port} of 127.0.0.1 can't be used: listen EADDRINUSE`,
    );
  });

  describe('with its options', () => {
    let server: DevServer;
    let client: Client;

    beforeAll(async () => {
      server = await startDevServer({
        cli: temporal().cli,
        webUi: true,
        searchAttributes: true,
        dynamicConfig: { 'limit.blobSize.warn': 1_000, 'limit.blobSize.error': 1_000 },
      });
      client = new Client({ connection: await Connection.connect({ address: server.address }) });
    });
    afterAll(async () => {
      await client.connection.close();
      await server.stop();
    });

    it('knows the search attributes of the project', async () => {
      const typedSearchAttributes = new TypedSearchAttributes([{ key: PHASE, value: 'watching' }]);
      await client.workflow.start('any', { workflowId: 'w', taskQueue: 'q', typedSearchAttributes });
      const description = await client.workflow.getHandle('w').describe();
      expect(description.typedSearchAttributes.get(PHASE)).toBe('watching');
    });

    it('takes settings of the server', async () => {
      const args = ['x'.repeat(2_000)];
      const starting = client.workflow.start('any', { workflowId: 'large', taskQueue: 'q', args });
      await expect(starting).rejects.toMatchObject({
        cause: { details: expect.stringMatching(/size exceeds limit/) as unknown },
      });
    });

    it('serves the Web UI', async () => {
      const answer = await fetch(`${server.uiUrl ?? ''}/namespaces/default/workflows`);
      expect(await answer.text()).toMatch(/<html/);
    });
  });
});

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
