import path from 'node:path';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { mustRun } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';
import {
  type EndToEndEnvironment,
  NPM_INSTALL,
  openEndToEndEnvironment,
  unpackedPath,
} from './end-to-end-environment';

// A first run downloads the versions of Node.
jest.setTimeout(300_000);

/** The oldest version that the project takes, and the newest of each later line. */
const NODES = ['20.19.0', '22.23.3', '24.21.0'];

let environment: EndToEndEnvironment;
const cwd = temporaryFolder();

beforeAll(async () => {
  environment = await openEndToEndEnvironment();
  // The user nobody works in it.
  await mustRun('chmod', ['755', cwd], { cwd });
  const platform = `${process.platform}-${process.arch}`;
  const programs = NODES.map((version) => `node-${version}@npm:node-${platform}@${version}`);
  await mustRun('npm', [...NPM_INSTALL, '--prefix', cwd, ...programs], { cwd });
});

afterAll(() => environment.close());

it.each(NODES)(
  'the worker artefact works under Node %s with its starter, as a user who may write nowhere in it, and ends on SIGTERM',
  async (version) => {
    const node = path.join(cwd, `node_modules/node-${version}/bin/node`);
    const worker = await environment.startWorker(node);
    expect(await worker.waitForReadyz(200)).toEqual([]);
    const { projectId, jobId } = environment.sandbox.addJob();
    const words = ['send', '--project', projectId, '--job', jobId, '--prompt', 'x', '--max-staleness', '2s'];
    const sent = await mustRun(node, [unpackedPath('worker', 'dist/starter.js'), ...words], {
      env: environment.env,
    });
    expect(sent).toMatch(/^status +completed\nprLink +http\S+\/pull\//);
    worker.signal('SIGTERM');
    expect(await worker.exited).toEqual({ code: 0, signal: null });
  },
);
