/**
 * Many follow-ups that wait at once on one worker process: `npm run bench:in-flight [-- N] [--heap MIB]`. All of them
 * are started and wait in the long tail of their polling; then the sandbox finishes every job, and every result is
 * compared with its job. It prints the memory and leaves it over time in `reports/bench-in-flight.json`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Command, InvalidArgumentError } from 'commander';
import type { FollowUpRequest } from '../src/contract/request';
import { freePorts } from '../src/dev/free-ports';
import type { JobKey } from '../src/sandbox';
import { ours } from './contestants';
import { eachOf } from '../src/client/each-of';
import type { Ground } from './ground';
import { describeMachine, type MachineFacts } from './machine';
import { MemoryWatch } from './memory-watch';
import { runBench, say, writeReport } from './run';

/** Callers at once, for the starts and for the results; the server limits the long polls of a namespace to 1,200. */
const CALLERS = 50;

/** The server hands out some hundred polls a second; so few leave its time to the starts and the ends. */
const POLLS_PER_SECOND = 25;
const SHORTEST_INTERVAL_MS = 60_000;

/** How long the idle worker is looked at, and how long all follow-ups do nothing but wait. */
const IDLE_MS = 10_000;
const HOLD_MS = 60_000;

/** From a start to its message, on a busy machine. */
const SEND_LIMIT_MS = 60_000;
const SEND_CHECK_MS = 50;

interface Options {
  readonly followUps: number;
  /** The heap limit of the worker process in MiB; the worker sizes its cache of workflows by it. */
  readonly heap: number;
}

async function measure(ground: Ground, machine: MachineFacts, { followUps, heap }: Options): Promise<void> {
  const { sandbox, client, server } = ground;
  const [metricsPort = 0] = await freePorts(1);
  const workerMetrics = `127.0.0.1:${metricsPort}`;
  const workerPid = await ground.startWorker(ours, {
    NODE_OPTIONS: `--max-old-space-size=${heap}`,
    FOLLOW_UP_METRICS_ADDRESS: workerMetrics,
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
  const polling = longTail(followUps);
  // No more than the callers are on their way at a time, so that the starts don't outrun the messages.
  const workflowIds = await eachOf(keys, CALLERS, async (key) => {
    const workflowId = await ours.start(client, { projectId: key.projectId, jobId: key.jobId }, polling);
    await untilSent(ground, key);
    return workflowId;
  });
  const waitingAt = enter('waiting');
  await sleep(HOLD_MS);

  const finishedAt = enter('ending');
  for (const key of keys) sandbox.changeJob(key, { status: 'completed', prLink: linkOf(key) });
  const results = await eachOf(workflowIds, CALLERS, (workflowId) =>
    ours.result(client, workflowId).catch((error: unknown) => {
      say(String(error));
    }),
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
    posts: sandbox.journal.entries({ operation: 'message' }).length,
    heapLimitMib: heap,
    pollingInterval: polling.maximum,
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
    ([name, value]) => `${name.padEnd(22)}${typeof value === 'number' ? Number(value.toFixed(1)) : value}`,
  );
  console.log(`\n${describeMachine(machine)}\n\n${lines.join('\n')}\n`);
  console.log(`Took ${Math.round(process.uptime())} s; memory over time: ${file}`);
  if (right.length < followUps || figures.posts !== followUps) throw new Error('not every result is right');
}

/** Waits until the message has arrived; not for ever, since the follow-up may have failed: the end will show it. */
async function untilSent({ sandbox }: Ground, key: JobKey): Promise<void> {
  const giveUpAt = Date.now() + SEND_LIMIT_MS;
  while (sandbox.job(key).messages === 0 && Date.now() < giveUpAt) await sleep(SEND_CHECK_MS);
}

/** As after hours: the first polls, which have timers of their own, are over, and the interval is at its maximum. */
function longTail(followUps: number) {
  const interval =
    `${Math.max(SHORTEST_INTERVAL_MS, Math.ceil((followUps / POLLS_PER_SECOND) * 1_000))}ms` as const;
  return {
    initial: interval,
    maximum: interval,
    growth: 0,
    jitter: 0.1,
    timerPolls: 0,
  } satisfies FollowUpRequest['polling'];
}

/** No two jobs have the same, so that a result that was mixed up shows. */
function linkOf({ jobId }: JobKey): string {
  return `https://example.test/pull/${jobId}`;
}

function wholeNumber(text: string): number {
  if (/^[1-9]\d*$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number above 0.');
}

const program = new Command('npm run bench:in-flight --')
  .argument('[follow-ups]', 'how many wait at once', wholeNumber, 20_000)
  .option('--heap <MiB>', 'heap limit of the worker; it sizes its cache of workflows by it', wholeNumber, 768)
  .parse();
const { heap } = program.opts<{ heap: number }>();
const followUps = program.processedArgs[0] as number;
runBench((ground, machine) => measure(ground, machine, { followUps, heap }));
