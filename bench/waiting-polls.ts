/**
 * What polls cost that wait in a worker's process, and what they cost as retries: `npm run bench:waiting-polls [-- N]`.
 * It has N polls wait on one worker, without the follow-ups around them, and tells the worker's memory, the CPU of server
 * and worker, and how long a single read takes beside them. It leaves `reports/bench-waiting-polls.json`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { table } from '../src/cli/render/text';
import { mapConcurrently } from '../src/client/map-concurrently';
import type { PollJobInput } from '../src/core/activities';
import { jobState } from '../src/core/job';
import { DEFAULT_TASK_QUEUES } from '../src/core/names';
import { NO_TROUBLE } from '../src/core/tally';
import { type Contestant, ours, oursByRetries, peer } from './contestants';
import type { Ground } from './ground';
import { describeMachine, type MachineFacts } from './machine';
import { cpuSeconds, residentBytes } from './process-usage';
import { runOnGrounds, say, writeReport } from './run';
import { median, quantile } from './statistics';
import { wholeNumber } from './whole-number';

const PEER = peer('waiting-polls', 'pollAlone');
const MIB = 2 ** 20;
const HOUR_MS = 3_600_000;

/** Long enough for two heartbeats of each poll. */
const HOLD_MS = 60_000;
/** How long all polls may take to begin. */
const BEGIN_LIMIT_MS = 10 * 60_000;
/** Callers at once. */
const CALLERS = 50;
const SINGLE_READS = 100;

interface Figures {
  readonly polls: number;
  readonly intervalMs: number;
  readonly rssMib: { readonly idle: number; readonly waiting: number };
  readonly kibPerPoll: number;
  readonly readsPerSecond: number;
  readonly heartbeatsPerSecond: number;
  /** Shares of a core, while they wait. */
  readonly serverCores: number;
  readonly workerCores: number;
  /** From the schedule of a single read to its end, by the server's clock. */
  readonly singleReadMs: Readonly<Record<'idle' | 'waiting', { median: number; p95: number }>>;
}

/** @param taskQueue of the worker's reads */
async function hold(
  ground: Ground,
  worker: Contestant,
  taskQueue: string,
  { polls, intervalMs }: { readonly polls: number; readonly intervalMs: number },
): Promise<Figures> {
  const { sandbox, client, server } = ground;
  const { projectId, jobId } = sandbox.addJob({ projectId: 'single' });
  const key = { projectId, jobId };
  const pid = await ground.startWorker(
    worker,
    worker === ours ? { AGENT_API_IN_PROCESS_POLLS: `${polls}` } : {},
  );
  await ground.startWorker(PEER);
  await singleReads(ground, taskQueue, key);
  const idleReads = await singleReads(ground, taskQueue, key);
  const idleRss = await residentBytes(pid);

  say(`${worker.name}: ${polls} polls begin`);
  const polling = { initialMs: intervalMs, maximumMs: intervalMs, growth: 0, jitter: 0.1, timerPolls: 0 };
  const jobs = Array.from({ length: polls }, () => sandbox.addJob({ projectId: 'waiting' }));
  await mapConcurrently(jobs, CALLERS, async ({ job, ...address }) => {
    const since = Date.now();
    const input: PollJobInput = {
      projectId: address.projectId,
      jobId: address.jobId,
      known: jobState(job),
      since,
      polling,
      trouble: NO_TROUBLE,
      firstWaitMs: intervalMs,
      endsAt: since + HOUR_MS,
    };
    const args = [taskQueue, input];
    await client.workflow.start('pollAlone', {
      workflowId: `poll-${address.jobId}`,
      taskQueue: PEER.taskQueue,
      args,
    });
  });
  await untilAllPoll(ground, polls);

  say(`${worker.name}: all of them wait`);
  const usage = async () => ({
    heartbeats: await ground.heartbeats(),
    reads: sandbox.journal.entries({ projectId: 'waiting' }).length,
    seconds: performance.now() / 1_000,
    server: await cpuSeconds(server.pid),
    worker: await cpuSeconds(pid),
  });
  const before = await usage();
  await sleep(HOLD_MS);
  const after = await usage();
  const perSecond = (figure: keyof typeof before) =>
    (after[figure] - before[figure]) / (after.seconds - before.seconds);
  const waitingRss = await residentBytes(pid);
  const waitingReads = await singleReads(ground, taskQueue, key);
  return {
    polls,
    intervalMs,
    rssMib: { idle: idleRss / MIB, waiting: waitingRss / MIB },
    kibPerPoll: (waitingRss - idleRss) / 1_024 / polls,
    readsPerSecond: perSecond('reads'),
    heartbeatsPerSecond: perSecond('heartbeats'),
    serverCores: perSecond('server'),
    workerCores: perSecond('worker'),
    singleReadMs: { idle: idleReads, waiting: waitingReads },
  };
}

/** Every job has been read once. */
async function untilAllPoll({ sandbox }: Ground, polls: number): Promise<void> {
  const giveUpAt = Date.now() + BEGIN_LIMIT_MS;
  for (;;) {
    const read = new Set(sandbox.journal.entries({ projectId: 'waiting' }).map(({ jobId }) => jobId));
    if (read.size === polls) return;
    if (Date.now() > giveUpAt) throw new Error(`only ${read.size} of ${polls} polls have begun`);
    await sleep(1_000);
  }
}

async function singleReads({ client }: Ground, taskQueue: string, key: { projectId: string; jobId: string }) {
  const workflowId = `reads-${Date.now()}`;
  const args = [taskQueue, key, SINGLE_READS];
  const handle = await client.workflow.start('readSingly', { workflowId, taskQueue: PEER.taskQueue, args });
  await handle.result();
  const { events } = await handle.fetchHistory();
  const timeOf = new Map<number, number>();
  const took: number[] = [];
  for (const { eventId, eventTime, ...event } of events ?? []) {
    const ms = Number(eventTime?.seconds ?? 0) * 1_000 + (eventTime?.nanos ?? 0) / 1e6;
    timeOf.set(Number(eventId), ms);
    const done = event.activityTaskCompletedEventAttributes;
    if (done) took.push(ms - (timeOf.get(Number(done.scheduledEventId)) ?? NaN));
  }
  return { median: median(took), p95: quantile(took, 0.95) };
}

async function measure(
  openGround: () => Promise<Ground>,
  machine: MachineFacts,
  size: { readonly polls: number; readonly intervalMs: number },
): Promise<void> {
  const ways = [
    { way: 'in process', worker: ours, taskQueue: DEFAULT_TASK_QUEUES.agentApi },
    { way: 'by retries', worker: oursByRetries, taskQueue: 'by-retries-reads' },
  ];
  const figures: (Figures & { readonly way: string })[] = [];
  let file = '';
  for (const { way, worker, taskQueue } of ways) {
    figures.push({ way, ...(await hold(await openGround(), worker, taskQueue, size)) });
    // After each of them: the second may take long.
    file = writeReport('bench-waiting-polls.json', { machine, figures });
  }
  const rows = figures.map(({ way, ...each }) => [
    way,
    `${each.rssMib.idle.toFixed(0)} → ${each.rssMib.waiting.toFixed(0)}`,
    each.kibPerPoll.toFixed(1),
    each.readsPerSecond.toFixed(1),
    each.heartbeatsPerSecond.toFixed(1),
    each.serverCores.toFixed(2),
    each.workerCores.toFixed(2),
    ...(['idle', 'waiting'] as const).map((when) => {
      const { median: middle, p95 } = each.singleReadMs[when];
      return `${middle.toFixed(0)} (p95 ${p95.toFixed(0)})`;
    }),
  ]);
  const headings = [
    'polls wait',
    'RSS MiB',
    'KiB a poll',
    'reads/s',
    'heartbeats/s',
    'server cores',
    'worker cores',
  ];
  console.log(`
${describeMachine(machine)}

${size.polls} polls, one every ${size.intervalMs} ms each:
${table([...headings, 'a single read before, ms', 'beside them, ms'], rows)}

Took ${Math.round(process.uptime())} s; all figures: ${file}`);
}

const program = new Command('npm run bench:waiting-polls --')
  .argument('[polls]', 'how many wait at once', wholeNumber, 2_000)
  .option('--interval <ms>', 'from one read of a poll to its next', wholeNumber, 5_000)
  .parse();
const polls = program.processedArgs[0] as number;
const { interval: intervalMs } = program.opts<{ interval: number }>();
runOnGrounds((openGround, machine) => measure(openGround, machine, { polls, intervalMs }));
