import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { fairnessKey } from '../../../src/contract/ids';
import { NOT_SENT_DELIVERY } from '../../harness/follow-up-under-test';
import { sharedEnvironment } from '../../harness/shared-environment';
import { temporalCommand } from '../../harness/temporal-command';

const { open, follow } = sharedEnvironment();

function configOf(taskQueue: string): Promise<string> {
  const queue = ['--task-queue', taskQueue, '--task-queue-type', 'activity'];
  return temporalCommand('task-queue', 'config', 'get', ...queue, '--output', 'json');
}

function setConfig(taskQueue: string, ...settings: string[]): Promise<string> {
  const queue = ['--task-queue', taskQueue, '--task-queue-type', 'activity'];
  return temporalCommand('task-queue', 'config', 'set', ...queue, ...settings);
}

it('the Temporal CLI accepts the commands of docs/limits.md, and the Temporal server returns the configured limits', async () => {
  const page = readFileSync(path.join(__dirname, '../../../docs/limits.md'), 'utf8');
  const commands = [...page.matchAll(/^temporal (task-queue config .*)$/gm)].map(([, args = '']) => args);
  const projectId = 'p'.repeat(100);
  const queues: Record<string, string> = {
    'agent-api-send': `page-${randomUUID()}`,
    'agent-api-read': `page-${randomUUID()}`,
  };
  for (const command of commands) {
    const args = command.replace('"$KEY=3"', `${fairnessKey(projectId)}=3`).split(' ');
    await temporalCommand(...args.map((arg) => queues[arg] ?? arg));
  }
  const [sends, reads] = await Promise.all(Object.values(queues).map(configOf));
  expect(JSON.parse(sends ?? '')).toMatchObject({
    queueRateLimit: { rateLimit: { requestsPerSecond: 0.0833 } },
    fairnessKeysRateLimitDefault: { rateLimit: { requestsPerSecond: 0.025 } },
    fairnessWeightOverrides: { [fairnessKey(projectId)]: 3 },
  });
  expect(JSON.parse(reads ?? '')).toMatchObject({
    queueRateLimit: { rateLimit: { requestsPerSecond: 50 } },
    fairnessKeysRateLimitDefault: { rateLimit: { requestsPerSecond: 5 } },
  });
});

it('a message over the limit per project waits, and other projects do not wait', async () => {
  const environment = await open();
  await setConfig(environment.taskQueues.send, '--fairness-key-rps-limit-default', '0.2');
  const { projectId } = environment.addJob();
  // The task queue has four partitions. Each partition lets the first message of a project pass, and one more every 20 s.
  const messages = await Promise.all(
    Array.from({ length: 8 }, () => follow({ projectId }, { deadline: '5s' })),
  );
  const outcomes = await Promise.all(messages.map((message) => message.outcomeSummary()));
  // On a busy machine, the deadline may also pass after a POST. A message that waits for the limit is not sent.
  const waiting = outcomes.filter(({ posts }) => posts.length === 0);
  expect(waiting.length).toBeGreaterThan(0);
  for (const outcome of waiting)
    expect(outcome).toMatchObject({ type: 'DeadlineExceeded', delivery: NOT_SENT_DELIVERY });
  // On a busy machine, a send may need a second attempt, which waits for the limit. One of several projects is therefore enough.
  const others = await Promise.all(Array.from({ length: 5 }, () => follow()));
  const first = await Promise.any(others.map((other) => other.outcomeSummary()));
  expect(first).toMatchObject({ status: 'completed', posts: [true] });
});
