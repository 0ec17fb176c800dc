/**
 * Measures many follow-ups that wait at the same time in one worker process: `npm run bench:in-flight [-- N]`. Every follow-up polls with
 * the retries of one activity, and the intervals grow. While all follow-ups wait, the worker is killed, and another worker replaces it. This
 * worker replays every history, because the sandbox then completes every job. The benchmark compares every result with its job. The
 * benchmark also compares the time of the read that returned the terminal status with the cadence.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { freePort } from '../lib/free-port';
import { scrape } from '../lib/scrape';
import type { JobKey } from '../../sandbox';
import type { Polling } from '../../src/contract/request';
import { pollIntervalMs } from '../../src/follow-up/cadence';
import { eachConcurrently } from '../../src/temporal/each-concurrently';
import { ours } from './subjects';
import { type BenchEnvironment, IN_CONTAINER, readMetric } from './bench-environment';
import { memoryMib } from './process-usage';
import { quantile, report, runBench, printProgress, wholeNumber } from './run';

/** The number of concurrent callers for starts and results. The Temporal server limits a namespace to 1,200 long polls. */
const CALLERS = 50;

/** The Temporal server delivers about a hundred polls per second. This number leaves most of its time to the starts and ends. */
const POLLS_PER_SECOND = 25;

/** The smallest `polling.maximum` of a run. */
const MIN_POLLING_MAXIMUM_MS = 60_000;

/** How long the worker is idle, and how long all follow-ups only wait, before the memory is measured. */
const IDLE_MS = 10_000;
const HOLD_MS = 60_000;

/** The longest time from a start to its message, on a busy machine. */
const SEND_LIMIT_MS = 60_000;
const SEND_CHECK_MS = 50;

async function measure(environment: BenchEnvironment, followUps: number): Promise<void> {
  const { sandbox, client } = environment;
  const metricsPort = await freePort();
  const workerMetrics = `127.0.0.1:${metricsPort}`;
  const startWorker = () =>
    environment.startWorker(ours, { ...IN_CONTAINER, FOLLOW_UP_METRICS_ADDRESS: workerMetrics });
  const workerPid = await startWorker();
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
  // Each caller waits for the message before its next start, so that starts are not faster than messages.
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

  printProgress('replacing the worker');
  const { peak: firstPeak } = await memoryMib(workerPid);
  process.kill(workerPid, 'SIGKILL');
  const secondWorkerPid = await startWorker();
  // The Temporal server lists the killed worker for some time, so the metrics show that the second worker runs.
  while ((await scrape(workerMetrics).catch(() => [])).length === 0) await sleep(500);

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
  const correct = keys.filter((key, index) => {
    const result = results[index];
    const posted = sandbox.job(key).messages;
    return posted === 1 && result?.id === key.jobId && result.prLink === linkOf(key);
  });
  const sentAt = started.map((each) => each.sentAt);
  report('bench-in-flight.json', {
    followUps,
    rightResults: correct.length,
    idleRssMib,
    waitingRssMib,
    peakRssMib: Math.max(firstPeak, (await memoryMib(secondWorkerPid)).peak),
    cachedWorkflows,
    startsPerSecond: followUps / secondsToStart,
    resultsPerSecond: followUps / secondsToEnd,
    p95LatenessOfAllowed: quantile(latenessOfAllowed(environment, keys, sentAt, finishedAt, polling), 0.95),
  });
  if (correct.length < followUps)
    throw new Error('a result does not match its job, or a job did not receive exactly one message');
}

/** Waits until the message has arrived, at most a minute: the outcome shows later whether the follow-up failed. @returns the time */
async function untilSent({ sandbox }: BenchEnvironment, key: JobKey): Promise<number> {
  const timeoutAt = Date.now() + SEND_LIMIT_MS;
  while (sandbox.job(key).messages === 0 && Date.now() < timeoutAt) await sleep(SEND_CHECK_MS);
  return Date.now();
}

/**
 * The first poll comes after five seconds, as in the default. Then the intervals grow faster and become longer than in the
 * default, so that the polls of follow-ups that were started leave the Temporal server time for further starts. On two cores,
 * with a growth of 0.5, this benchmark measured that the rate of starts fell from 12 to 5 per second within 12,000 starts. No poll has its own timer.
 */
function cadence(followUps: number): Polling {
  const maximumMs = Math.max(MIN_POLLING_MAXIMUM_MS, Math.ceil((followUps / POLLS_PER_SECOND) * 1_000));
  return { initialMs: 5_000, maximumMs, growth: 2, jitter: 0.1, timerPolls: 0 };
}

/**
 * Returns for each job the lateness of the read that returned its end, as a share of the lateness that the cadence allows. The allowed
 * lateness is the interval at that age with the maximum jitter, plus one second.
 *
 * @param sentAt the time of each job's message, in the order of `keys`
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

/** Returns the link of a job. The links are unique, so that a result of another job is detected. */
function linkOf({ jobId }: JobKey): string {
  return `https://example.test/pull/${jobId}`;
}

const program = new Command('npm run bench:in-flight --')
  .argument('[follow-ups]', 'number of follow-ups that wait at the same time', wholeNumber, 10_000)
  .parse();
runBench((environment) => measure(environment, program.processedArgs[0] as number));
