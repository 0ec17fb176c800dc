import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { type BenchSubject, FIXED } from './subjects';
import type { BenchEnvironment } from './bench-environment';
import { computeCost } from '../lib/history-cost';
import { cpuSeconds, serverProcessId } from './process-usage';
import { quantile } from './run';

/** The size of a group: the number of follow-ups, and the number of polls after which the job of each has ended. */
export interface GroupSize {
  readonly polls: number;
  readonly followUps: number;
}

/**
 * The cost of one group of follow-ups with the same number of polls. The benchmark starts these follow-ups at the same time, but not as
 * a batch. Every figure apart from the rate is per follow-up.
 */
export interface GroupFigures {
  readonly followUpsPerSecond: number;
  readonly serverCpuMs: number;
  readonly workerCpuMs: number;
  readonly events: number;
  /** The size of the history. */
  readonly bytes: number;
  /** The billable actions by Temporal's rules: the ones that the history shows, and the heartbeats that reached the server. */
  readonly actions: number;
}

/**
 * The number of histories that are read of each group. A sample is enough, because the histories of the follow-ups differ only in how
 * many events share a workflow task.
 */
const HISTORIES = 9;

/**
 * Starts the follow-ups of a group at the same time, and waits for the last result. The job of each has ended at the last poll.
 *
 * @throws Error if a job was not read exactly `polls` times, or did not receive exactly one message
 */
export async function runGroup(
  environment: BenchEnvironment,
  subject: BenchSubject,
  workerPid: number,
  size: GroupSize,
): Promise<GroupFigures> {
  const { followUps, polls } = size;
  const { sandbox, client } = environment;
  const projectId = `group-${randomUUID().slice(0, 8)}`;
  const jobs = Array.from({ length: followUps }, () => sandbox.addJob({ projectId, turn: { reads: polls } }));
  const serverPid = await serverProcessId();
  const cpu = async () => [await cpuSeconds(serverPid), await cpuSeconds(workerPid)] as const;
  const heartbeatsBefore = await environment.heartbeats();
  const [serverBefore, workerBefore] = await cpu();
  const startedAt = performance.now();
  const workflowIds = await Promise.all(
    jobs.map(async ({ jobId }) => {
      const workflowId = await subject.start(client, { projectId, jobId }, FIXED);
      await subject.result(client, workflowId);
      return workflowId;
    }),
  );
  const seconds = (performance.now() - startedAt) / 1_000;
  const [serverAfter, workerAfter] = await cpu();
  const heartbeats = (await environment.heartbeats()) - heartbeatsBefore;

  expectExactReads(environment, projectId, size);
  const costs: ReturnType<typeof computeCost>[] = [];
  for (const workflowId of workflowIds.slice(-HISTORIES)) costs.push(await historyCost(client, workflowId));
  const typical = (figure: 'events' | 'bytes' | 'actions') =>
    quantile(
      costs.map((cost) => cost[figure]),
      0.5,
    );
  return {
    followUpsPerSecond: followUps / seconds,
    serverCpuMs: ((serverAfter - serverBefore) * 1_000) / followUps,
    workerCpuMs: ((workerAfter - workerBefore) * 1_000) / followUps,
    events: typical('events'),
    bytes: typical('bytes'),
    actions: typical('actions') + heartbeats / followUps,
  };
}

async function historyCost(client: Client, workflowId: string) {
  const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
  return computeCost(events ?? []);
}

/** The sandbox's journal has every request: one message to each job, and `polls` reads after it. */
function expectExactReads(
  { sandbox }: BenchEnvironment,
  projectId: string,
  { followUps, polls }: GroupSize,
): void {
  const reads = new Map<string, number>();
  for (const { jobId, processed } of sandbox.journal.entries({ projectId })) {
    const before = reads.get(jobId ?? '');
    // A read before the message is not a poll. After a second message, the count stays invalid (NaN).
    if (processed) reads.set(jobId ?? '', before === undefined ? 0 : NaN);
    else if (before !== undefined) reads.set(jobId ?? '', before + 1);
  }
  const counts = [...reads.values()];
  if (counts.length === followUps && counts.every((count) => count === polls)) return;
  throw new Error(
    `expected ${followUps} jobs with one message and ${polls} reads each, but the numbers of reads are ${[...new Set(counts)].join(', ')}`,
  );
}
