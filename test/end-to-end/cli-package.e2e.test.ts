import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { mustRun } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';
import { readPageCommands } from './deployments/page-commands';
import { artifactPath, type EndToEndEnvironment, openEndToEndEnvironment } from './end-to-end-environment';

const folder = temporaryFolder();
let environment: EndToEndEnvironment;

beforeAll(async () => {
  environment = await openEndToEndEnvironment();
  await environment.startWorker();
});

afterAll(() => environment.close());

/** The largest size of the installed CLI. The worker's archive has more than 100 MB, because it contains the native core. */
const MAX_INSTALLED_KILOBYTES = 25_000;

it('the commands of docs/cli.md install the CLI without a package registry and without the worker’s native core, and send a message', async () => {
  const prefix = path.join(folder, 'prefix');
  const cwd = path.join(folder, 'archives');
  mkdirSync(cwd);
  await mustRun('cp', [artifactPath('cli'), cwd]);
  const { projectId, jobId } = environment.sandbox.addJob({ turn: { reads: 2 } });
  const values = {
    'temporal.example:7233': environment.env.TEMPORAL_ADDRESS ?? '',
    '--project docs --job job-1': `--project ${projectId} --job ${jobId} --max-staleness 1s --polling-initial 500ms`,
  };
  const headings = ['Install the CLI', 'Connect to the Temporal server', 'Send a message'];
  const commands = headings.flatMap((heading) => readPageCommands('docs/cli.md', heading, values));
  expect(commands).toHaveLength(3);
  const env = {
    ...environment.env,
    TEMPORAL_ADDRESS: undefined,
    PATH: `${path.join(prefix, 'bin')}:${environment.env.PATH ?? ''}`,
    npm_config_prefix: prefix,
    // A request to this address fails.
    npm_config_registry: 'http://127.0.0.1:9/',
    npm_config_cache: path.join(folder, 'cache'),
  };
  const output = await mustRun('sh', ['-ec', commands.join('')], { cwd, env });
  expect(output).toMatch(/^status +completed\nprLink +http\S+\/pull\/\d+$/m);
  expect(environment.sandbox.journal.entries({ projectId, jobId, operation: 'message' })).toHaveLength(1);

  const modules = path.join(prefix, 'lib/node_modules/agent-follow-up-cli/node_modules');
  const packages = (await mustRun('ls', [path.join(modules, '@temporalio')])).trim().split('\n');
  expect(packages).toEqual(['client', 'common', 'proto']);
  expect(await mustRun('find', [prefix, '-name', '*.node'])).toBe('');
  const [kilobytes] = (await mustRun('du', ['-sk', prefix])).split('\t');
  expect(Number(kilobytes)).toBeLessThan(MAX_INSTALLED_KILOBYTES);
});
