import { randomUUID } from 'node:crypto';
import { cpus } from 'node:os';
import type { Client } from '@temporalio/client';
import { costOf } from './history-cost';
import { type Contestant, FIXED } from './contestants';
import type { Ground } from './ground';
import { cpuSeconds } from './process-usage';
import { median } from './statistics';

/** A contestant whose worker process runs. */
export interface Entrant {
  readonly contestant: Contestant;
  readonly workerPid: number;
}

/** A batch: so many follow-ups, each of a job that is done after so many polls. */
export interface Length {
  readonly polls: number;
  readonly followUps: number;
}

/** What one batch of follow-ups of the same length has cost; everything but the rate is per follow-up. */
export interface BatchFigures {
  readonly followUpsPerSecond: number;
  readonly serverCpuSeconds: number;
  readonly workerCpuSeconds: number;
  readonly events: number;
  readonly bytes: number;
  readonly workflowTasks: number;
  /** Billable ones by Temporal's rules: those that history shows, and the heartbeats that have reached the server. */
  readonly actions: number;
  /** Cores that server, worker, sandbox and callers kept busy. */
  readonly busyCores: number;
  /** Cores that other programs kept busy. */
  readonly othersCores: number;
}

/** Follow-ups are equal but for the meeting of two workflow tasks; so many histories are read of each batch. */
const HISTORIES = 9;

/**
 * Starts so many follow-ups at once, each of a job that is done at its `polls`th read, and waits for the last result.
 *
 * @throws Error when a job was not read exactly so often, or got another message than one
 */
export async function runBatch(
  ground: Ground,
  { contestant, workerPid }: Entrant,
  length: Length,
): Promise<BatchFigures> {
  const { followUps, polls } = length;
  const { sandbox, client } = ground;
  const projectId = `batch-${randomUUID().slice(0, 8)}`;
  const jobs = Array.from({ length: followUps }, () => sandbox.addJob({ projectId, turn: { reads: polls } }));
  const heartbeatsBefore = await ground.heartbeats();
  const usageBefore = await usageOf(ground, workerPid);
  const workflowIds = await Promise.all(
    jobs.map(async ({ jobId }) => {
      const workflowId = await contestant.start(client, { projectId, jobId }, FIXED);
      await contestant.result(client, workflowId);
      return workflowId;
    }),
  );
  const usage = difference(usageBefore, await usageOf(ground, workerPid));
  const heartbeats = (await ground.heartbeats()) - heartbeatsBefore;

  expectExactReads(ground, projectId, length);
  const traces: Trace[] = [];
  for (const workflowId of workflowIds.slice(-HISTORIES)) traces.push(await traceOf(client, workflowId));
  const typical = (figure: keyof Trace) => median(traces.map((trace) => trace[figure]));
  const busy = usage.serverCpu + usage.workerCpu + usage.ownCpu;
  return {
    followUpsPerSecond: followUps / usage.seconds,
    serverCpuSeconds: usage.serverCpu / followUps,
    workerCpuSeconds: usage.workerCpu / followUps,
    events: typical('events'),
    bytes: typical('bytes'),
    workflowTasks: typical('workflowTasks'),
    actions: typical('actions') + heartbeats / followUps,
    busyCores: busy / usage.seconds,
    othersCores: (usage.machineCpu - busy) / usage.seconds,
  };
}

/** Everything that a batch uses up, counted from some moment in the past; times in seconds. */
interface Usage {
  readonly seconds: number;
  readonly serverCpu: number;
  readonly workerCpu: number;
  readonly ownCpu: number;
  readonly machineCpu: number;
}

async function usageOf(ground: Ground, workerPid: number): Promise<Usage> {
  return {
    seconds: performance.now() / 1_000,
    serverCpu: await ground.serverCpuSeconds(),
    workerCpu: await cpuSeconds(workerPid),
    ownCpu: await cpuSeconds(process.pid),
    machineCpu:
      cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0) / 1_000,
  };
}

function difference(before: Usage, after: Usage): Usage {
  const of = (figure: keyof Usage) => after[figure] - before[figure];
  return {
    seconds: of('seconds'),
    serverCpu: of('serverCpu'),
    workerCpu: of('workerCpu'),
    ownCpu: of('ownCpu'),
    machineCpu: of('machineCpu'),
  };
}

/** What one workflow has left on the server. */
interface Trace {
  readonly events: number;
  readonly bytes: number;
  readonly workflowTasks: number;
  readonly actions: number;
}

async function traceOf(client: Client, workflowId: string): Promise<Trace> {
  const handle = client.workflow.getHandle(workflowId);
  const [{ events }, { historySize }] = await Promise.all([handle.fetchHistory(), handle.describe()]);
  const cost = costOf(events ?? []);
  return { ...cost, bytes: historySize ?? cost.bytes };
}

/** By the sandbox's journal, which knows: one message to each job, and so many reads since. */
function expectExactReads({ sandbox }: Ground, projectId: string, { followUps, polls }: Length): void {
  const reads = new Map<string, number>();
  for (const { jobId, processed } of sandbox.journal.entries({ projectId })) {
    const before = reads.get(jobId ?? '');
    // A read before the message is no poll; a second message makes the count wrong for good.
    if (processed) reads.set(jobId ?? '', before === undefined ? 0 : NaN);
    else if (before !== undefined) reads.set(jobId ?? '', before + 1);
  }
  const counts = [...reads.values()];
  if (counts.length === followUps && counts.every((count) => count === polls)) return;
  throw new Error(
    `not ${followUps} jobs with one message and ${polls} reads each: ${[...new Set(counts)].join(', ')}`,
  );
}
