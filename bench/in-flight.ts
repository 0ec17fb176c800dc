/**
 * Many follow-ups that wait at once on one worker process: `npm run bench:in-flight [-- N] [--heap MIB] [--in-process N]`.
 * Their first polls come after some seconds, so that more want to wait in the worker's process than may, and the others wait
 * as retries; then the intervals grow. In the end the sandbox finishes every job, and every result is compared with
 * its job, and the time at which its end was seen with the cadence. It prints the memory and leaves it over time in
 * `reports/bench-in-flight.json`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { freePorts } from '../dev/free-ports';
import type { JobKey } from '../sandbox';
import { pollInterval } from '../src/core/cadence';
import type { Polling } from '../src/core/request';
import { ours } from './contestants';
import { eachConcurrently } from '../src/temporal/each-concurrently';
import type { Ground } from './ground';
import { describeMachine, type MachineFacts } from './machine';
import { MemoryWatch } from './memory-watch';
import { quantile } from './statistics';
import { runBench, say, wholeNumber, writeReport } from './run';

/** Callers at once, for the starts and for the results; the server limits the long polls of a namespace to 1,200. */
const CALLERS = 50;

/** The server hands out some hundred polls a second; so few leave its time to the starts and the ends. */
const POLLS_PER_SECOND = 25;
const SHORTEST_MAXIMUM_MS = 60_000;

/** How long the idle worker is looked at, and how long all follow-ups do nothing but wait. */
const IDLE_MS = 10_000;
const HOLD_MS = 60_000;

/** Messages from one line about the progress to the next. */
const SAY_EVERY = 1_000;

/** From a start to its message, on a busy machine. */
const SEND_LIMIT_MS = 60_000;
const SEND_CHECK_MS = 50;

interface Options {
  readonly followUps: number;
  /** How many polls may wait in the worker's process; undefined for its default. */
  readonly inProcess: number | undefined;
  /** The heap limit of the worker process in MiB; the worker sizes its cache of workflows by it. */
  readonly heap: number;
}

async function measure(
  ground: Ground,
  machine: MachineFacts,
  { followUps, heap, inProcess }: Options,
): Promise<void> {
  const { sandbox, client, server } = ground;
  const [metricsPort = 0] = await freePorts(1);
  const workerMetrics = `127.0.0.1:${metricsPort}`;
  const workerPid = await ground.startWorker(ours, {
    NODE_OPTIONS: `--max-old-space-size=${heap}`,
    FOLLOW_UP_METRICS_ADDRESS: workerMetrics,
    ...(inProcess === undefined ? {} : { AGENT_API_IN_PROCESS_POLLS: `${inProcess}` }),
  });
  const watch = new MemoryWatch(workerPid, workerMetrics, server.pid);
  const enter = (phase: string): number => {
    watch.phase = phase;
    const { workerRssMib = 0, cachedWorkflows = 0 } = watch.samples.at(-1) ?? {};
    const memory = `worker ${workerRssMib.toFixed(0)} MiB, ${cachedWorkflows} workflows cached`;
    say(`${watch.seconds().toFixed(0)} s: ${phase}; ${memory}`);
    return watch.seconds();
  };
  enter('idle');
  await sleep(IDLE_MS);

  const startedAt = enter('starting');
  const keys = Array.from({ length: followUps }, () =>
    sandbox.addJob({ projectId: 'in-flight', turn: { durationMs: null } }),
  );
  const polling = cadence(followUps);
  const { initialMs, maximumMs, ...others } = polling;
  const requested = { ...others, initial: `${initialMs}ms`, maximum: `${maximumMs}ms` } as const;
  // No more than the callers are on their way at a time, so that the starts don't outrun the messages.
  let sent = 0;
  const started: { readonly workflowId: string; readonly sentAt: number }[] = [];
  await eachConcurrently(
    keys.entries(),
    async ([index, key]) => {
      const workflowId = await ours.start(client, { projectId: key.projectId, jobId: key.jobId }, requested);
      const sentAt = await untilSent(ground, key);
      if ((sent += 1) % SAY_EVERY === 0) say(`${watch.seconds().toFixed(0)} s: ${sent} messages sent`);
      started[index] = { workflowId, sentAt };
    },
    CALLERS,
  );
  const waitingAt = enter('waiting');
  await sleep(HOLD_MS);

  const finishedAt = enter('ending');
  const changedAt = Date.now();
  for (const key of keys) sandbox.changeJob(key, { status: 'completed', prLink: linkOf(key) });
  const results: Awaited<ReturnType<typeof ours.result>>[] = [];
  await eachConcurrently(
    started.entries(),
    async ([index, { workflowId }]) => {
      try {
        results[index] = await ours.result(client, workflowId);
      } catch (error) {
        say(String(error));
      }
    },
    CALLERS,
  );
  const endedAt = enter('ended');
  await watch.stop();

  const right = keys.filter((key, index) => {
    const result = results[index];
    const posted = sandbox.job(key).messages;
    return posted === 1 && result?.id === key.jobId && result.prLink === linkOf(key);
  });
  const idle = watch.lastOf('idle');
  const waiting = watch.lastOf('waiting');
  const grownKib = (waiting.workerRssMib - idle.workerRssMib) * 1_024;
  const figures = {
    followUps,
    rightResults: right.length,
    posts: keys.reduce((sum, key) => sum + sandbox.job(key).messages, 0),
    heapLimitMib: heap,
    inProcessPolls: inProcess ?? 'default',
    longestIntervalSeconds: maximumMs / 1_000,
    ...latenessOf(
      ground,
      keys,
      started.map(({ sentAt }) => sentAt),
      changedAt,
      polling,
    ),
    secondsToStart: waitingAt - startedAt,
    secondsToEnd: endedAt - finishedAt,
    idleRssMib: idle.workerRssMib,
    waitingRssMib: waiting.workerRssMib,
    peakRssMib: Math.max(...watch.samples.map(({ workerRssMib }) => workerRssMib)),
    cachedWorkflows: waiting.cachedWorkflows,
    evictions: watch.lastOf('ended').evictions,
    kibPerFollowUp: grownKib / followUps,
    kibPerCachedWorkflow: grownKib / waiting.cachedWorkflows,
  };
  const file = writeReport('bench-in-flight.json', { machine, figures, samples: watch.samples });
  const lines = Object.entries(figures).map(
    ([name, value]) => `${name.padEnd(22)}${typeof value === 'number' ? Number(value.toFixed(2)) : value}`,
  );
  console.log(`\n${describeMachine(machine)}\n\n${lines.join('\n')}\n`);
  console.log(`Took ${Math.round(process.uptime())} s; memory over time: ${file}`);
  if (right.length < followUps || figures.posts !== followUps) throw new Error('not every result is right');
}

/** Waits until the message has arrived; not for ever, since the follow-up may have failed: the end will show it. @returns when */
async function untilSent({ sandbox }: Ground, key: JobKey): Promise<number> {
  const giveUpAt = Date.now() + SEND_LIMIT_MS;
  while (sandbox.job(key).messages === 0 && Date.now() < giveUpAt) await sleep(SEND_CHECK_MS);
  return Date.now();
}

/**
 * The first poll comes after five seconds, as by default. Then the intervals grow faster and further than by default, so that
 * the polls of those that have started leave the server time for the starts (measured on two cores: with a growth of 0.5 the
 * starts fell from 12 to 5 a second within 12,000). No poll has a timer of its own.
 */
function cadence(followUps: number): Polling {
  const maximumMs = Math.max(SHORTEST_MAXIMUM_MS, Math.ceil((followUps / POLLS_PER_SECOND) * 1_000));
  return { initialMs: 5_000, maximumMs, growth: 2, jitter: 0.1, timerPolls: 0 };
}

/**
 * How late the end of each job was read, in seconds, and as a share of what the cadence allows: its wait at that age with
 * the jitter, and a second.
 *
 * @param sentAt of each job, in the order of `keys`
 */
function latenessOf(
  { sandbox }: Ground,
  keys: readonly JobKey[],
  sentAt: readonly number[],
  finishedAt: number,
  polling: Polling,
) {
  const readAt = new Map<string | null, number>();
  for (const { jobId, time } of sandbox.journal.entries({ operation: 'get' })) {
    const at = Date.parse(time);
    if (at >= finishedAt && !readAt.has(jobId)) readAt.set(jobId, at);
  }
  const lateness = keys.map(({ jobId }) => (readAt.get(jobId) ?? NaN) - finishedAt);
  const shares = lateness.map((late, index) => {
    const ageMs = finishedAt - (sentAt[index] ?? NaN);
    return late / (pollInterval(polling, ageMs, () => 1) + 1_000);
  });
  return {
    p95LatenessSeconds: quantile(lateness, 0.95) / 1_000,
    p95LatenessOfAllowed: quantile(shares, 0.95),
    maxLatenessOfAllowed: Math.max(...shares),
  };
}

/** No two jobs have the same, so that a result that was mixed up shows. */
function linkOf({ jobId }: JobKey): string {
  return `https://example.test/pull/${jobId}`;
}

const program = new Command('npm run bench:in-flight --')
  .argument('[follow-ups]', 'how many wait at once', wholeNumber, 10_000)
  .option('--heap <MiB>', 'heap limit of the worker; it sizes its cache of workflows by it', wholeNumber, 768)
  .option('--in-process <N>', 'how many polls may wait in its process', wholeNumber)
  .parse();
const { heap, inProcess } = program.opts<{ heap: number; inProcess?: number }>();
const followUps = program.processedArgs[0] as number;
runBench((ground, machine) => measure(ground, machine, { followUps, heap, inProcess }));
