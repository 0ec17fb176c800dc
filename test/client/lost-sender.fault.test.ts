import { expect, it } from '@jest/globals';
import { eventually } from '../../tools/lib/eventually';
import { ENDLESS_TURN, taskQueueVariables } from '../harness/follow-up-under-test';
import { ProcessEnvironment } from '../harness/process-environment';
import { Program } from '../harness/program';
import { HOLD_AFTER_PROCESSING } from '../harness/scenario';

const HELD_READ = { name: 'hold', operation: 'get' } as const;

// Proves W1, W2.
it.concurrent.each([
  ['before its send permission: no report has a verdict', HELD_READ, null],
  ['during its POST: every report has an unknown delivery', HOLD_AFTER_PROCESSING, 'unknown'],
] as const)('reports after a worker was killed while it sent, %s', (_, fault, verdict) =>
  ProcessEnvironment.with({}, async (environment) => {
    const worker = await environment.startWorker();
    const following = await environment.follow(ENDLESS_TURN, {}, fault);
    await following.waitForRequest({ fault: 'hold' });
    worker.signal('SIGKILL');
    await worker.exited;

    const { workflowId } = following.handle;
    const handle = environment.followUps.getHandle(workflowId);
    const description = await handle.describe();
    expect(description).toMatchObject({ state: 'running', phase: 'starting', outcome: null, verdict });
    expect(await handle.progress()).toMatchObject({ from: 'server', description: { verdict } });

    const cli = async (...args: string[]) => {
      const env = taskQueueVariables(environment.taskQueues);
      const { stdout, stderr } = await Program.startCli(args, env).waitForEnd();
      return stdout + stderr;
    };
    const status = await cli('status', workflowId);
    expect(status).toContain('no worker has responded');
    expect(/^delivery +(\S+); /m.exec(status)?.[1] ?? null).toBe(verdict);
    expect(JSON.parse(await cli('status', workflowId, '--json'))).toMatchObject({ progress: null, verdict });
    const list = () => cli('list', '--project', following.key.projectId);
    const listed = await eventually('the follow-up is listed', list, {
      until: (text) => text.includes(workflowId),
    });
    for (const text of [status, listed]) expect(text).not.toMatch(/not-sent|nothing sent/i);
    await following.handle.terminate();
  }),
);
