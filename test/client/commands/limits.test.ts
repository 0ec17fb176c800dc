import { beforeAll, describe, expect, it } from '@jest/globals';
import { FollowUpClient, type Limits } from '../../../src/client';
import { type Environment } from '../../harness/environment';
import { sharedEnvironment } from '../../harness/shared-environment';
import { starter } from './starter';

const open = sharedEnvironment();

/** One environment, hence one pair of queues: the commands come one after the other. */
describe('limits', () => {
  let environment: Environment;

  beforeAll(async () => {
    environment = await open();
  });

  const limits = (...args: string[]) => starter(environment, ['limits', ...args]);

  it('show that there are none', async () => {
    const { code, stdout, stderr } = await limits('show');

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^REQUESTS +TASK QUEUE +TOTAL +PER PROJECT +WEIGHTS +WAITING$/m);
    expect(stdout).toMatch(new RegExp(`^sends +${environment.taskQueues.send} +none +none +none +0$`, 'm'));
    expect(stdout).toMatch(new RegExp(`^reads +${environment.taskQueues.read} +none +none +none +0$`, 'm'));
  });

  it('are set on the queues that the environment names, and shown', async () => {
    const set = await limits('set', '--sends-per-project', '90/h', '--reads-total', '50/s');

    expect(set.code).toBe(0);
    expect(set.stdout).toMatch(/^sends +send-\S+ +none +90\/h +none +0$/m);
    expect(set.stdout).toMatch(/^reads +read-\S+ +50\/s +none +none +0$/m);
    expect(set.stderr).toContain('matching.enableFairness');
    const { sends } = await clientOf(environment).limits.get();
    expect(sends.perProject).toMatchObject({ rate: '90/h' });
  });

  it('are one JSON document with --json, and a limit of all projects needs no fairness', async () => {
    const { code, stdout, stderr } = await limits('set', '--sends-total', '300/h', '--json');

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({
      sends: {
        taskQueue: environment.taskQueues.send,
        total: { rate: '300/h' },
        perProject: { rate: '90/h' },
      },
      reads: { total: { rate: '50/s' } },
    });
  });

  it('take the weights of several projects, whose ids may hold an equals sign', async () => {
    const set = await limits('set', '--project-weight', 'docs=3', '--project-weight', 'a=b=0.5', '--json');

    expect(set.code).toBe(0);
    const { sends, reads } = JSON.parse(set.stdout) as Limits;
    expect(sends.weights).toEqual({ docs: 3, 'a=b': 0.5 });
    expect(reads.weights).toEqual(sends.weights);
  });

  it('lose one by off, and all by clear', async () => {
    const off = await limits('set', '--sends-per-project', 'off', '--project-weight', 'docs=off');
    expect({ code: off.code, stderr: off.stderr }).toEqual({ code: 0, stderr: '' });
    expect(off.stdout).toMatch(/^sends +send-\S+ +300\/h +none +a=b=0.5 /m);

    const cleared = await limits('clear');
    expect(cleared.code).toBe(0);
    expect(cleared.stdout).toMatch(/^sends +send-\S+ +none +none +none /m);
    expect(cleared.stdout).toMatch(/^reads +read-\S+ +none +none +none /m);
  });
});

function clientOf({ client, taskQueues }: Environment): FollowUpClient {
  return new FollowUpClient(client, { readTaskQueue: taskQueues.read, sendTaskQueue: taskQueues.send });
}
