/**
 * Measures the cost of a follow-up that waits for a turn of 5 minutes, 2 hours and 24 hours, next to the cost of a plain loop that
 * notices the end equally late: `npm run bench:waiting`. The bench takes about 25 minutes, prints the table of docs/performance.md,
 * and writes the table to `reports/bench-waiting.json`.
 *
 * The number of reads and the lateness are computed from the cadence, without waiting for hours. The cost of these reads is then
 * measured with short intervals, because the cost of a read does not depend on the time before it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { eachConcurrently } from '../../src/temporal/each-concurrently';
import { fixed, OURS, type ScheduleCost, simulate } from '../lib/polling-schedules';
import { type GroupFigures, runGroup } from './group';
import type { BenchEnvironment } from './bench-environment';
import { memoryMib, serverProcessId } from './process-usage';
import { printProgress, quantile, report, runBench } from './run';
import { type BenchSubject, oursWithLock, textbookLoop } from './subjects';

const MINUTE_MS = 60_000;
const TURNS: readonly (readonly [string, number])[] = [
  ['5 min', 5 * MINUTE_MS],
  ['2 h', 120 * MINUTE_MS],
  ['24 h', 24 * 60 * MINUTE_MS],
];

/** Every round measures every row, so that a change of the machine's speed affects all of them. */
const ROUNDS = 3;

/** The approximate number of reads in one group. A group has at least {@link MIN_FOLLOW_UPS} follow-ups. */
const READS_PER_GROUP = 3_000;
const MIN_FOLLOW_UPS = 20;

interface Row {
  readonly turn: string;
  readonly subject: BenchSubject;
  readonly schedule: ScheduleCost;
  readonly figures: GroupFigures[];
}

/** Returns the rows: for each turn, a follow-up, and the plain loop with the same median lateness. */
function rows(): readonly Row[] {
  return TURNS.flatMap(([turn, lengthMs]) => {
    const schedule = simulate(OURS, lengthMs);
    // A turn is equally likely to end at any moment of an interval, so the median lateness is half an interval.
    const loop = simulate(fixed(2 * schedule.medianLatenessMs), lengthMs);
    return [
      { turn, subject: oursWithLock, schedule, figures: [] },
      { turn, subject: textbookLoop, schedule: loop, figures: [] },
    ];
  });
}

async function measure(environment: BenchEnvironment): Promise<void> {
  const pids = new Map<BenchSubject, number>();
  const memory = new Map<BenchSubject, MemoryFigures>();
  for (const subject of [oursWithLock, textbookLoop]) {
    const pid = await environment.startWorker(subject);
    pids.set(subject, pid);
    printProgress(`${subject.name}: warming up, then measuring the memory`);
    await runGroup(environment, subject, pid, { polls: 4, followUps: 80 });
    memory.set(subject, await measureMemory(environment, subject, pid));
  }
  const measured = rows();
  for (let round = 1; round <= ROUNDS; round += 1)
    for (const { turn, subject, schedule, figures } of measured) {
      const polls = Math.round(schedule.meanPolls);
      const followUps = Math.max(MIN_FOLLOW_UPS, Math.round(READS_PER_GROUP / polls));
      figures.push(await runGroup(environment, subject, pids.get(subject) ?? NaN, { polls, followUps }));
      printProgress(`round ${round}: ${subject.name}, ${turn}, ${polls} polls of ${followUps} follow-ups`);
    }
  report(
    'bench-waiting.json',
    measured.map(({ turn, subject, schedule, figures }) => {
      const median = (name: keyof GroupFigures) =>
        quantile(
          figures.map((each) => each[name]),
          0.5,
        );
      return {
        ...{ turn, workflow: subject.name, reads: Math.round(schedule.meanPolls) },
        ...{
          medianLatenessS: schedule.medianLatenessMs / 1_000,
          p95LatenessS: schedule.p95LatenessMs / 1_000,
        },
        ...{ actions: median('actions'), events: median('events'), bytes: median('bytes') },
        ...{ serverCpuMs: median('serverCpuMs'), workerCpuMs: median('workerCpuMs') },
        ...memory.get(subject),
      };
    }),
  );
}

/** The memory that a waiting follow-up adds to the processes, in KiB. */
interface MemoryFigures {
  readonly workerKib: number;
  readonly serverKib: number;
}

/** The number of follow-ups that wait while the memory is measured. The workers' caches have room for all of them. */
const WAITING = 500;
const CALLERS = 20;
const SETTLE_MS = 20_000;

/** A single long interval is used, so that no follow-up polls while the memory is measured. */
const RARELY = { initial: '10m', growth: 0, maximum: '10m', jitter: 0 } as const;

async function measureMemory(
  { sandbox, client }: BenchEnvironment,
  subject: BenchSubject,
  workerPid: number,
): Promise<MemoryFigures> {
  const serverPid = await serverProcessId();
  const resident = async () => [(await memoryMib(workerPid)).now, (await memoryMib(serverPid)).now] as const;
  await sleep(SETTLE_MS);
  const [workerBefore, serverBefore] = await resident();
  const jobs = Array.from({ length: WAITING }, () =>
    sandbox.addJob({ projectId: `memory-${subject.taskQueue}`, turn: { durationMs: null } }),
  );
  const workflowIds: string[] = [];
  const start = async ({ projectId, jobId }: (typeof jobs)[number]) => {
    workflowIds.push(await subject.start(client, { projectId, jobId }, RARELY));
  };
  await eachConcurrently(jobs, start, CALLERS);
  while (jobs.some((job) => sandbox.job(job).messages === 0)) await sleep(100);
  await sleep(SETTLE_MS);
  const [workerAfter, serverAfter] = await resident();
  const terminate = async (workflowId: string) => {
    await client.workflow.getHandle(workflowId).terminate();
  };
  await eachConcurrently(workflowIds, terminate, CALLERS);
  const kib = (before: number, after: number) => ((after - before) * 1_024) / WAITING;
  return { workerKib: kib(workerBefore, workerAfter), serverKib: kib(serverBefore, serverAfter) };
}

runBench(measure);
