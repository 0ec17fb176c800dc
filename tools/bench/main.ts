/**
 * Measures the cost of a follow-up next to the cost of a plain loop, and the delays of a single follow-up: `npm run bench`. The
 * bench takes about ten minutes, prints the table of docs/performance.md, and writes the table to `reports/bench.json`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type GroupFigures, type GroupSize, runGroup } from './group';
import { type BenchSubject, FIXED, ours, oursWithLock, textbookLoop } from './subjects';
import type { BenchEnvironment } from './bench-environment';
import { quantile, report, runBench, printProgress } from './run';

/**
 * The follow-ups of a group run at the same time, so that all cores stay busy while single follow-ups wait. On two idle cores, a
 * group takes 10 to 30 s. A subject whose polls cost less needs more follow-ups, because sixty polls take at least six seconds.
 */
const MEASUREMENTS: readonly (readonly [BenchSubject, GroupSize])[] = [
  [ours, { polls: 4, followUps: 120 }],
  [oursWithLock, { polls: 4, followUps: 120 }],
  [textbookLoop, { polls: 4, followUps: 120 }],
  [ours, { polls: 20, followUps: 100 }],
  [textbookLoop, { polls: 20, followUps: 60 }],
  [ours, { polls: 60, followUps: 80 }],
  [textbookLoop, { polls: 60, followUps: 30 }],
];

/** Every round measures every subject, so that a change of the machine's speed affects all of them. */
const ROUNDS = 3;

/** Fills the caches of all programs, and lets Node compile the code that runs often. */
const WARM_UP: GroupSize = { polls: 4, followUps: 80 };

const SINGLE_FOLLOW_UPS = 20;
/** The pause between two follow-ups, in which the Temporal server finishes the work of the previous one. */
const REST_MS = 200;

async function measure(environment: BenchEnvironment): Promise<void> {
  const pids = new Map<BenchSubject['program'], number>();
  for (const subject of [ours, oursWithLock, textbookLoop]) {
    const pid = pids.get(subject.program) ?? (await environment.startWorker(subject));
    pids.set(subject.program, pid);
    printProgress(`${subject.name}: warming up`);
    await runGroup(environment, subject, pid, WARM_UP);
  }
  const alone: (readonly [number, number])[] = [];
  for (let count = 0; count < SINGLE_FOLLOW_UPS; count += 1)
    alone.push(await measureSingleFollowUp(environment));

  const groups = MEASUREMENTS.map((): GroupFigures[] => []);
  for (let round = 1; round <= ROUNDS; round += 1) {
    for (const [index, [subject, size]] of MEASUREMENTS.entries()) {
      const figures = await runGroup(environment, subject, pids.get(subject.program) ?? NaN, size);
      groups[index]?.push(figures);
      const rate = figures.followUpsPerSecond.toFixed(1);
      printProgress(`round ${round}: ${subject.name}, ${size.polls} polls: ${rate} follow-ups/s`);
    }
  }

  const rows = MEASUREMENTS.map(([{ name }, { polls }], index) => {
    const median = (figure: keyof GroupFigures) =>
      quantile(
        (groups[index] ?? []).map((figures) => figures[figure]),
        0.5,
      );
    const [followUpsPerSecond, serverCpuMs] = [median('followUpsPerSecond'), median('serverCpuMs')];
    const [workerCpuMs, events, actions] = [median('workerCpuMs'), median('events'), median('actions')];
    const serverCpuRatio = quantile(cpuRatios(groups, index), 0.5);
    const figures = { followUpsPerSecond, serverCpuMs, serverCpuRatio, workerCpuMs, events, actions };
    return { polls, workflow: name, ...figures };
  });
  report('bench.json', rows);
  const [toPost, toResult] = [0, 1].map((index) =>
    quantile(
      alone.map((spans) => spans[index] ?? NaN),
      0.5,
    ),
  );
  console.log(
    `One at a time: ${toPost} ms from start to POST, ${toResult} ms from last read to result (medians).`,
  );
}

/** The Temporal server's CPU time in each round, divided by the plain loop's in the same round with the same number of polls. */
function cpuRatios(groups: readonly (readonly GroupFigures[])[], index: number): number[] {
  const polls = MEASUREMENTS[index]?.[1].polls;
  const loop = MEASUREMENTS.findIndex(([subject, size]) => subject === textbookLoop && size.polls === polls);
  return (groups[index] ?? []).map(
    ({ serverCpuMs }, round) => serverCpuMs / (groups[loop]?.[round]?.serverCpuMs ?? NaN),
  );
}

/**
 * Runs one follow-up whose job ends at its first read.
 *
 * @returns the milliseconds from the start to the POST, and from that read to the result
 */
async function measureSingleFollowUp({
  sandbox,
  client,
}: BenchEnvironment): Promise<readonly [number, number]> {
  await sleep(REST_MS);
  const { projectId, jobId } = sandbox.addJob({ projectId: 'alone', turn: { reads: 1 } });
  const startedAt = Date.now();
  await ours.result(client, await ours.start(client, { projectId, jobId }, FIXED));
  const endedAt = Date.now();
  const [post] = sandbox.journal.entries({ projectId, jobId, processed: true });
  const read = sandbox.journal.entries({ projectId, jobId, operation: 'get' }).at(-1);
  return [Date.parse(post?.time ?? '') - startedAt, endedAt - Date.parse(read?.time ?? '')];
}

runBench(measure);
