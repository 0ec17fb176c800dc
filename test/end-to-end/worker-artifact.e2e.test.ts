import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { mustRun } from '../harness/program';
import {
  type EndToEndEnvironment,
  NODE_VERSIONS,
  nodePath,
  openEndToEndEnvironment,
  unpackedPath,
} from './end-to-end-environment';

let environment: EndToEndEnvironment;

beforeAll(async () => {
  environment = await openEndToEndEnvironment();
});

afterAll(() => environment.close());

it.each(NODE_VERSIONS)(
  'the worker artifact and its CLI work under Node %s as a user without write permission, and the worker ends on SIGTERM',
  async (version) => {
    const node = nodePath(version);
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
