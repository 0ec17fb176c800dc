import { randomUUID } from 'node:crypto';
import { FollowUpClient, type FollowUpDescription, type FollowUpFilter } from '../../src/client';
import { eventually } from '../harness/eventually';
import { type Environment, QUICK } from '../harness/environment';

export function clientOf(environment: Environment): FollowUpClient {
  return new FollowUpClient(environment.client, { taskQueue: environment.taskQueue });
}

/** A client whose follow-ups no worker takes up. */
export function idleClientOf(environment: Environment): FollowUpClient {
  return new FollowUpClient(environment.client, { taskQueue: `nobody-${randomUUID()}` });
}

/** A request to a new job of the sandbox. @param durationMs of its turn; null for one that never ends by itself */
export function request(environment: Environment, durationMs: number | null = 300) {
  const { projectId, jobId } = environment.sandbox.addJob({
    projectId: `client-${randomUUID().slice(0, 8)}`,
    turn: { durationMs },
  });
  return { projectId, jobId, prompt: 'Fix the broken links.', requestId: 'order-1', ...QUICK };
}

/** The POSTs that reached the service for a request. */
export function posts(environment: Environment, { projectId }: { projectId: string }) {
  return environment.sandbox.journal.entries({ projectId, operation: 'message' });
}

/** Waits until the message has been sent and the job was read since. @throws Error when it is not within ten seconds */
export async function untilPolled(followUps: FollowUpClient, workflowId: string): Promise<void> {
  await eventually(`${workflowId} is polled`, async () => {
    const report = await followUps.getHandle(workflowId).progress();
    return report.from === 'worker' && report.progress.polls > 0;
  });
}

/** All that a list has. */
export async function listed(
  followUps: FollowUpClient,
  filter: FollowUpFilter,
): Promise<FollowUpDescription[]> {
  const found: FollowUpDescription[] = [];
  for await (const followUp of followUps.list(filter)) found.push(followUp);
  return found;
}
