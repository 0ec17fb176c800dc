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

// The first run downloads these versions of Node.
jest.setTimeout(300_000);

/** The oldest supported version of Node, and a recent version of each later LTS line. */
const NODES = ['20.19.0', '22.23.3', '24.21.0'];

let environment: EndToEndEnvironment;
const cwd = temporaryFolder();

beforeAll(async () => {
  environment = await openEndToEndEnvironment();
  // The worker runs as another user, who must be able to read this folder.
  await mustRun('chmod', ['755', cwd], { cwd });
  const platform = `${process.platform}-${process.arch}`;
  const programs = NODES.map((version) => `node-${version}@npm:node-${platform}@${version}`);
  await mustRun('npm', [...NPM_INSTALL, '--prefix', cwd, ...programs], { cwd });
});

afterAll(() => environment.close());

it.each(NODES)(
  'the worker artifact and its CLI work under Node %s as a user without write permission, and the worker ends on SIGTERM',
  async (version) => {
    const node = path.join(cwd, `node_modules/node-${version}/bin/node`);
    const worker = await environment.startWorker(node);
    expect(await worker.waitForReadyz(200)).toEqual([]);
    const { projectId, jobId } = environment.sandbox.addJob();
    const args = ['send', '--project', projectId, '--job', jobId, '--prompt', 'x', '--max-staleness', '2s'];
    const sent = await mustRun(node, [unpackedPath('worker', 'dist/starter.js'), ...args], {
      env: environment.env,
    });
    expect(sent).toMatch(/^status +completed\nprLink +http\S+\/pull\//);
    worker.signal('SIGTERM');
    expect(await worker.exited).toEqual({ code: 0, signal: null });
  },
);
