/**
 * Many follow-ups that wait at once on one worker process: `npm run bench:in-flight [-- N]`. Every follow-up polls with the
 * retries of one activity, and the intervals grow. At the end, the sandbox finishes every job. The bench compares every result
 * with its job, and the time of the read that returned the end with the cadence.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import getPort from 'get-port';
import type { JobKey } from '../../sandbox';
import type { Polling } from '../../src/contract/request';
import { pollIntervalMs } from '../../src/follow-up/cadence';
import { eachConcurrently } from '../../src/temporal/each-concurrently';
import { ours } from './subjects';
import { type BenchEnvironment, IN_CONTAINER, readMetric } from './bench-environment';
import { memoryMib } from './process-usage';
import { quantile, report, runBench, printProgress, wholeNumber } from './run';

/** Callers at once, for the starts and for the results; the server limits the long polls of a namespace to 1,200. */
const CALLERS = 50;

/** The Temporal server delivers about a hundred polls per second. This number leaves most of its time to the starts and ends. */
const POLLS_PER_SECOND = 25;
const SHORTEST_MAXIMUM_MS = 60_000;

/** How long the idle worker is looked at, and how long all follow-ups do nothing but wait. */
const IDLE_MS = 10_000;
const HOLD_MS = 60_000;

/** From a start to its message, on a busy machine. */
const SEND_LIMIT_MS = 60_000;
const SEND_CHECK_MS = 50;

async function measure(environment: BenchEnvironment, followUps: number): Promise<void> {
  const { sandbox, client } = environment;
  const metricsPort = await getPort();
  const workerMetrics = `127.0.0.1:${metricsPort}`;
  const workerPid = await environment.startWorker(ours, {
    ...IN_CONTAINER,
    FOLLOW_UP_METRICS_ADDRESS: workerMetrics,
  });
  await sleep(IDLE_MS);
  const { now: idleRssMib } = await memoryMib(workerPid);

  printProgress('starting');
  const startedAt = performance.now();
  const keys = Array.from({ length: followUps }, () =>
    sandbox.addJob({ projectId: 'in-flight', turn: { durationMs: null } }),
  );
  const polling = cadence(followUps);
  const { initialMs, maximumMs, ...others } = polling;
  const requested = { ...others, initial: `${initialMs}ms`, maximum: `${maximumMs}ms` } as const;
  // No more than the callers are on their way at a time, so that the starts don't outrun the messages.
  const started: { readonly workflowId: string; readonly sentAt: number }[] = [];
  await eachConcurrently(
    keys.entries(),
    async ([index, key]) => {
      const workflowId = await ours.start(client, { projectId: key.projectId, jobId: key.jobId }, requested);
      started[index] = { workflowId, sentAt: await untilSent(environment, key) };
    },
    CALLERS,
  );
  const secondsToStart = (performance.now() - startedAt) / 1_000;
  printProgress('waiting');
  await sleep(HOLD_MS);
  const { now: waitingRssMib } = await memoryMib(workerPid);
  const cachedWorkflows = await readMetric(workerMetrics, 'temporal_sticky_cache_size');

  printProgress('ending');
  const [finishedAt, endingAt] = [Date.now(), performance.now()];
  for (const key of keys) sandbox.changeJob(key, { status: 'completed', prLink: linkOf(key) });
  const results: Awaited<ReturnType<typeof ours.result>>[] = [];
  await eachConcurrently(
    started.entries(),
    async ([index, { workflowId }]) => {
      try {
        results[index] = await ours.result(client, workflowId);
      } catch (error) {
        printProgress(String(error));
      }
    },
    CALLERS,
  );
  const secondsToEnd = (performance.now() - endingAt) / 1_000;
  const right = keys.filter((key, index) => {
    const result = results[index];
    const posted = sandbox.job(key).messages;
    return posted === 1 && result?.id === key.jobId && result.prLink === linkOf(key);
  });
  const sentAt = started.map((each) => each.sentAt);
  report('bench-in-flight.json', {
    followUps,
    rightResults: right.length,
    idleRssMib,
    waitingRssMib,
    peakRssMib: (await memoryMib(workerPid)).peak,
    cachedWorkflows,
    startsPerSecond: followUps / secondsToStart,
    resultsPerSecond: followUps / secondsToEnd,
    p95LatenessOfAllowed: quantile(latenessOfAllowed(environment, keys, sentAt, finishedAt, polling), 0.95),
  });
  if (right.length < followUps) throw new Error('not every result is right, of one message');
}

/** Waits until the message has arrived; not for ever, since the follow-up may have failed: the end will show it. @returns when */
async function untilSent({ sandbox }: BenchEnvironment, key: JobKey): Promise<number> {
  const giveUpAt = Date.now() + SEND_LIMIT_MS;
  while (sandbox.job(key).messages === 0 && Date.now() < giveUpAt) await sleep(SEND_CHECK_MS);
  return Date.now();
}

/**
 * The first poll comes after five seconds, as in the default. Then the intervals grow faster and become longer than in the
 * default, so that the polls of follow-ups that were started leave the Temporal server time for further starts. (Measured on two
 * cores: with a growth of 0.5, the rate of starts fell from 12 to 5 per second within 12,000 starts.) No poll has its own timer.
 */
function cadence(followUps: number): Polling {
  const maximumMs = Math.max(SHORTEST_MAXIMUM_MS, Math.ceil((followUps / POLLS_PER_SECOND) * 1_000));
  return { initialMs: 5_000, maximumMs, growth: 2, jitter: 0.1, timerPolls: 0 };
}

/**
 * How late the end of each job was read, as a share of what the cadence allows: its wait at that age with the jitter, and a
 * second.
 *
 * @param sentAt of each job, in the order of `keys`
 */
function latenessOfAllowed(
  { sandbox }: BenchEnvironment,
  keys: readonly JobKey[],
  sentAt: readonly number[],
  finishedAt: number,
  polling: Polling,
): number[] {
  const readAt = new Map<string | null, number>();
  for (const { jobId, time } of sandbox.journal.entries({ operation: 'get' })) {
    const at = Date.parse(time);
    if (at >= finishedAt && !readAt.has(jobId)) readAt.set(jobId, at);
  }
  return keys.map(({ jobId }, index) => {
    const late = (readAt.get(jobId) ?? NaN) - finishedAt;
    const ageMs = finishedAt - (sentAt[index] ?? NaN);
    return late / (pollIntervalMs(polling, ageMs, () => 1) + 1_000);
  });
}

/** No two jobs have the same, so that a result that was mixed up shows. */
function linkOf({ jobId }: JobKey): string {
  return `https://example.test/pull/${jobId}`;
}

const program = new Command('npm run bench:in-flight --')
  .argument('[follow-ups]', 'how many wait at once', wholeNumber, 10_000)
  .parse();
runBench((environment) => measure(environment, program.processedArgs[0] as number));
