/**
 * What fairness and priority do for a small project beside a big one: `npm run bench:fairness`. A big project wants to
 * send many messages, a small one then three, and a limit makes both wait; on servers with fairness on and off, and with
 * the four partitions that a task queue has by default and with one. It prints how long the small project waits and
 * leaves it in `reports/bench-fairness.json`. It takes some six minutes and little CPU.
 */
import { table } from '../src/cli/render/text';
import { FollowUpClient, type LimitsChange } from '../src/client';
import type { FollowUpRequest } from '../src/core/request';
import { ours, PROMPT } from './contestants';
import { mapConcurrently } from '../src/client/map-concurrently';
import type { Ground } from './ground';
import { describeMachine } from './machine';
import { runOnGrounds, say, writeReport } from './run';
import { median } from './statistics';

interface Scenario {
  readonly name: string;
  readonly limits: LimitsChange;
  /** By how many a second the big project may send. */
  readonly perSecond: number;
  /** Messages of the big project. */
  readonly big: number;
  /** Whether the big project comes as a batch, which has a lower priority. */
  readonly asBatch: boolean;
}

const SCENARIOS: readonly Scenario[] = [
  { name: 'sends-total 4/s', limits: { sendsTotal: '4/s' }, perSecond: 4, big: 80, asBatch: false },
  {
    name: 'sends-total 4/s, big as a batch',
    limits: { sendsTotal: '4/s' },
    perSecond: 4,
    big: 80,
    asBatch: true,
  },
  {
    name: 'sends-per-project 2/s',
    limits: { sendsPerProject: '2/s' },
    perSecond: 2,
    big: 40,
    asBatch: false,
  },
];

const SERVERS = [4, 1].flatMap((partitions) => [false, true].map((fairness) => ({ partitions, fairness })));

const SMALL = 3;

/** Nothing is read after the send: what is measured are the sends. */
const SEND_ONLY: Partial<FollowUpRequest> = {
  deadline: '30m',
  polling: { initial: '20m', growth: 0, maximum: '20m', jitter: 0 },
};

/** Eighty messages at four a second, when only one of four partitions works at a time. */
const PATIENCE_MS = 120_000;

interface Figures {
  readonly scenario: string;
  readonly partitions: number;
  readonly fairness: boolean;
  /** From the start of each of the small project's follow-ups to its POST. */
  readonly smallWaitMs: readonly number[];
  /** Messages of the big project before the last one of the small project, of how many. */
  readonly bigBefore: number;
  readonly big: number;
  /** Messages of the big project a second, from the first to the last, and what the limit allows. */
  readonly bigPerSecond: number;
  readonly allowedPerSecond: number;
}

async function measure(ground: Ground, { name, limits, perSecond, big, asBatch }: Scenario) {
  const { sandbox, client } = ground;
  const followUps = new FollowUpClient(client);
  await followUps.limits.clear();
  await followUps.limits.set(limits);
  const bigId = `big-${SCENARIOS.findIndex((scenario) => scenario.name === name)}`;
  const smallId = bigId.replace('big', 'small');
  const requestsOf = (projectId: string, count: number) =>
    Array.from({ length: count }, () => {
      const { jobId } = sandbox.addJob({ projectId, turn: { durationMs: null } });
      return { projectId, jobId, requestId: jobId, prompt: PROMPT, ...SEND_ONLY };
    });
  const wait = (projectId: string, operation: 'get' | 'message', atLeast: number) =>
    sandbox.journal.waitFor({ projectId, operation }, { atLeast, timeoutMs: PATIENCE_MS });

  const bigRequests = requestsOf(bigId, big);
  if (asBatch) {
    await followUps.batches.start(await followUps.batches.check(bigRequests, { batchId: bigId }), {
      concurrency: big,
    });
  } else {
    await mapConcurrently(bigRequests, 20, (request) => followUps.start(request));
  }
  await wait(bigId, 'get', big);
  const startedAt = new Map<string, number>();
  for (const request of requestsOf(smallId, SMALL)) {
    startedAt.set(request.jobId, Date.now());
    await followUps.start(request);
  }
  const small = await wait(smallId, 'message', SMALL);
  const all = await wait(bigId, 'message', big);

  const last = Math.max(...small.map(({ number }) => number));
  const times = all.map(({ time }) => Date.parse(time));
  const seconds = (Math.max(...times) - Math.min(...times)) / 1_000;
  return {
    scenario: name,
    smallWaitMs: small.map(({ time, jobId }) => Date.parse(time) - (startedAt.get(jobId ?? '') ?? NaN)),
    bigBefore: all.filter(({ number }) => number < last).length,
    big,
    bigPerSecond: (big - 1) / seconds,
    allowedPerSecond: perSecond,
  };
}

function tableOf(figures: readonly Figures[]): string {
  const seconds = (ms: number): string => (ms / 1_000).toFixed(1);
  const rows = figures.map((each) => [
    each.scenario,
    String(each.partitions),
    each.fairness ? 'on' : 'off',
    seconds(median(each.smallWaitMs)),
    seconds(Math.max(...each.smallWaitMs)),
    `${each.bigBefore} of ${each.big}`,
    `${each.bigPerSecond.toFixed(1)} of ${each.allowedPerSecond}`,
  ]);
  const headings = [
    'limit',
    'partitions',
    'fairness',
    'small waits, s',
    'at most',
    'big before',
    'big, per s',
  ];
  return table(headings, rows);
}

runOnGrounds(async (openGround, machine) => {
  const figures: Figures[] = [];
  for (const { partitions, fairness } of SERVERS) {
    const ground = await openGround({
      'matching.enableFairness': fairness,
      'matching.numTaskqueueReadPartitions': partitions,
      'matching.numTaskqueueWritePartitions': partitions,
    });
    await ground.startWorker(ours);
    for (const scenario of SCENARIOS) {
      say(`${scenario.name}: fairness ${fairness ? 'on' : 'off'}, ${partitions} partitions`);
      figures.push({ ...(await measure(ground, scenario)), partitions, fairness });
    }
  }
  const order = SCENARIOS.map(({ name }) => name);
  figures.sort((one, other) => order.indexOf(one.scenario) - order.indexOf(other.scenario));
  const file = writeReport('bench-fairness.json', { machine, figures });
  console.log(`\n${describeMachine(machine)}\n\n${tableOf(figures)}\n`);
  say(`all figures: ${file}`);
});
