/**
 * Measures what a follow-up costs, beside a plain loop, and how soon it acts when it is alone: `npm run bench`. It takes some
 * minutes, prints the table of docs/performance.md, and leaves it in `reports/bench.json`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type BatchFigures, type Length, runBatch } from './batch';
import { type Contestant, FIXED, ours, textbookLoop } from './contestants';
import type { Ground } from './ground';
import { quantile, report, runBench, say } from './run';

/**
 * How many at once, so that all cores are busy and the intervals cost no time: on two idle cores some 10 to 30 s a batch. A
 * contestant whose polls cost little needs more of them: sixty take six seconds at least.
 */
const HEATS: readonly (readonly [Contestant, Length])[] = [
  [ours, { polls: 4, followUps: 120 }],
  [textbookLoop, { polls: 4, followUps: 120 }],
  [ours, { polls: 60, followUps: 300 }],
  [textbookLoop, { polls: 60, followUps: 30 }],
];

/** Round by round, so that a change of the machine's speed meets all. */
const ROUNDS = 3;

/** Fills the caches of all programs, and has the code compiled that runs often. */
const WARM_UP: Length = { polls: 4, followUps: 80 };

const ALONE = 20;
/** Between two follow-ups: what the one before has left to do on the server is then done. */
const REST_MS = 200;

async function measure(ground: Ground): Promise<void> {
  const pids = new Map<Contestant, number>();
  for (const contestant of [ours, textbookLoop]) {
    const pid = await ground.startWorker(contestant);
    pids.set(contestant, pid);
    say(`${contestant.name}: warming up`);
    await runBatch(ground, contestant, pid, WARM_UP);
  }
  const alone: (readonly [number, number])[] = [];
  for (let count = 0; count < ALONE; count += 1) alone.push(await followOne(ground));

  const batches = HEATS.map((): BatchFigures[] => []);
  for (let round = 1; round <= ROUNDS; round += 1) {
    for (const [index, [contestant, length]] of HEATS.entries()) {
      const figures = await runBatch(ground, contestant, pids.get(contestant) ?? NaN, length);
      batches[index]?.push(figures);
      const rate = figures.followUpsPerSecond.toFixed(1);
      say(`round ${round}: ${contestant.name}, ${length.polls} polls: ${rate} follow-ups/s`);
    }
  }

  const rows = HEATS.map(([{ name }, { polls }], index) => {
    const median = (figure: keyof BatchFigures) =>
      quantile(
        (batches[index] ?? []).map((figures) => figures[figure]),
        0.5,
      );
    const [followUpsPerSecond, serverCpuMs] = [median('followUpsPerSecond'), median('serverCpuMs')];
    const [workerCpuMs, events, actions] = [median('workerCpuMs'), median('events'), median('actions')];
    return { polls, workflow: name, followUpsPerSecond, serverCpuMs, workerCpuMs, events, actions };
  });
  report('bench.json', rows);
  const [toPost, toResult] = [0, 1].map((index) =>
    quantile(
      alone.map((spans) => spans[index] ?? NaN),
      0.5,
    ),
  );
  console.log(`One at a time: start to POST ${toPost} ms, job done to result ${toResult} ms (medians).`);
}

/** Follows a job up that is done at its first read: milliseconds from the start to the POST, and from that read to the result. */
async function followOne({ sandbox, client }: Ground): Promise<readonly [number, number]> {
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
