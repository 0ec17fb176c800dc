import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import type { FollowUpResult } from '../../src/core/result';
import { followUpWorkflowId } from '../../src/core/ids';
import { QUICK } from '../harness/environment';
import { sharedEnvironment } from '../harness/shared-environment';
import { temporal } from '../harness/temporal';

const open = sharedEnvironment();
const run = promisify(execFile);

interface Ended {
  readonly code: number;
  readonly output: string;
}

/** `temporal workflow execute` as somebody calls it who has never heard of this project's client. */
async function execute(taskQueue: string, workflowId: string, input: unknown): Promise<Ended> {
  const { cli, address, env } = temporal();
  const args = [
    'workflow',
    'execute',
    '--type',
    'followUp',
    '--task-queue',
    taskQueue,
    '--workflow-id',
    workflowId,
  ];
  const policies = ['--id-conflict-policy', 'UseExisting', '--id-reuse-policy', 'RejectDuplicate'];
  const rest = ['--input', JSON.stringify(input), '--address', address, '--output', 'json'];
  try {
    const { stdout } = await run(cli, [...args, ...policies, ...rest], { env });
    return { code: 0, output: stdout };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, output: stdout + stderr };
  }
}

describe('a foreign caller, the temporal command line', () => {
  it.concurrent('gets the final job and its receipt', async () => {
    const environment = await open();
    const { projectId, jobId } = environment.sandbox.addJob({ projectId: 'foreign' });
    const request = { projectId, jobId, prompt: 'Fix it.', requestId: 'r-1', ...QUICK };
    const { code, output } = await execute(
      environment.taskQueue,
      followUpWorkflowId(projectId, jobId, 'r-1'),
      request,
    );
    const { result } = JSON.parse(output) as { result: FollowUpResult };
    expect(code).toBe(0);
    expect(result).toMatchObject({
      ...environment.sandbox.job({ projectId, jobId }).job,
      followUp: { requestId: 'r-1' },
    });
    expect(result.prLink).toContain('/pull/');
  });

  it.concurrent(
    'that starts the same follow-up while it runs gets its result, and nothing is sent twice',
    async () => {
      const environment = await open();
      const { projectId, jobId } = environment.sandbox.addJob({ projectId: 'foreign-twice' });
      const request = { projectId, jobId, prompt: 'Fix it.', requestId: 'r-2', ...QUICK };
      const workflowId = followUpWorkflowId(projectId, jobId, 'r-2');
      const first = execute(environment.taskQueue, workflowId, request);
      await environment.sandbox.journal.waitFor({ projectId, operation: 'message' });
      const [one, other] = await Promise.all([first, execute(environment.taskQueue, workflowId, request)]);
      expect([one.code, other.code]).toEqual([0, 0]);
      expect(environment.sandbox.journal.entries({ projectId, operation: 'message' })).toHaveLength(1);
    },
  );

  it.concurrent('with a bad input gets InvalidRequest with every problem named', async () => {
    const environment = await open();
    const { code, output } = await execute(environment.taskQueue, 'foreign-bad', {
      projectId: '..',
      prompt: '',
      deadline: 5,
    });
    expect(code).not.toBe(0);
    expect(output).toContain('InvalidRequest');
    for (const problem of [
      'projectId: must not be',
      'jobId: is missing',
      'prompt: must not be empty',
      'needs a unit',
    ]) {
      expect(output).toContain(problem);
    }
  });
});
