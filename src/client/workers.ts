import type { Client } from '@temporalio/client';

/**
 * A waiting poller comes back at least once a minute (Temporal's long poll); the server keeps listing one that is gone
 * for five. Hence one that was not heard of for 90 s counts as gone.
 */
const POLLER_IS_GONE_AFTER_MS = 90_000;

/** The enum value TASK_QUEUE_TYPE_WORKFLOW of Temporal's API, whose package is no dependency of ours. */
const WORKFLOW_TASKS = 1;

/**
 * The workers that poll a workflow task queue, by identity. One that was killed stays for up to 90 seconds.
 *
 * @param timeoutMs limit of the call
 */
export async function workersPolling(
  client: Client,
  taskQueue: string,
  timeoutMs: number,
): Promise<string[]> {
  const { pollers } = await client.withDeadline(Date.now() + timeoutMs, () =>
    client.workflowService.describeTaskQueue({
      namespace: client.options.namespace,
      taskQueue: { name: taskQueue },
      // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- its enum can't be imported, see above
      taskQueueType: WORKFLOW_TASKS,
    }),
  );
  const alive = pollers.filter(({ lastAccessTime }) => {
    const seenAt = Number(lastAccessTime?.seconds ?? 0) * 1_000;
    return seenAt > Date.now() - POLLER_IS_GONE_AFTER_MS;
  });
  return [...new Set(alive.map(({ identity }) => identity ?? 'unnamed'))];
}
