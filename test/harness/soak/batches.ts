import { setTimeout as sleep } from 'node:timers/promises';
import { isGrpcServiceError, WorkflowNotFoundError } from '@temporalio/client';
import { ConflictError, hasCode, NoAnswerError, NotFoundError } from '../../../src/client';
import { isTransient } from '../../../src/temporal/grpc-status';
import { BatchOfTest, LARGE, REJECTED_ONCE } from '../batch-of-test';
import type { FollowUpCaller } from '../following';
import { resetToTask, workflowTasks } from '../reset';
import { throughRestarts } from '../restartable-server';
import { TIMES } from './follow-ups';

/** What people may hear, beside the words of a server that is away; anything else is a bug. */
const EXPECTED = [ConflictError, NotFoundError, NoAnswerError, WorkflowNotFoundError];
const EXPECTED_CODES = [
  ...(['ALREADY_ENDED', 'STILL_RUNNING', 'UPDATE_REFUSED', 'UNREACHABLE', 'NOT_CONFIRMED'] as const),
];

const MOST_OPEN = 6;
const ITEMS = 10;
const MAX_PAUSE_MS = 800;

/** Each item has a prompt of its own, and all but every fifth one, which follows the item before it, a job of its own. */
export function soakBatch(caller: FollowUpCaller, random: () => number): BatchOfTest {
  const batch = new BatchOfTest(caller, 'soak');
  const once = { operation: 'message', times: 1 } as const;
  let key = { projectId: '', jobId: '' };
  for (let item = 0; item < ITEMS; item += 1) {
    const turn = { durationMs: Math.round(200 + 2_500 * random()) };
    if (item % 5 !== 4) key = caller.addJob({ projectId: `project-${item % 3}`, turn });
    const chance = random();
    if (chance < 0.2) caller.sandbox.setFault({ ...REJECTED_ONCE, ...key });
    else if (chance < 0.35) caller.sandbox.setFault({ name: 'processed-then-reset', ...once, ...key });
    batch.again(key, {
      ...TIMES,
      prompt: `item ${item}. ${item % 2 === 0 ? LARGE.slice(0, 240 * 1_024) : ''}`,
    });
  }
  return batch;
}

/** What people do to a batch, one thing after the other, until `stop`. @returns what was done */
export async function meddle(batch: BatchOfTest, random: () => number, stop: AbortSignal): Promise<string[]> {
  const { handle, workflow } = batch;
  const start = () => batch.start({ concurrency: 1 + Math.floor(random() * MOST_OPEN) });
  const item = () => batch.itemHandle(Math.floor(random() * ITEMS));
  const deeds: Readonly<Record<string, () => Promise<unknown>>> = {
    start,
    cancel: () => handle.cancel(),
    cancelWithFollowUps: () => handle.cancel({ followUps: true }).then(start),
    retry: () => handle.retry(),
    pauseAndResume: () => handle.pause().then(() => handle.resume()),
    concurrency: () => handle.setConcurrency(1 + Math.floor(random() * MOST_OPEN)),
    results: () => handle.settled(),
    terminateAndStart: () => batch.terminate().then(start),
    reset: async () => {
      const tasks = await workflowTasks(workflow);
      await resetToTask(workflow, tasks[Math.floor(random() * tasks.length)]);
    },
    terminateItem: async () => (await item()).terminate(),
    cancelItem: async () => (await item()).cancel(),
  };
  await throughRestarts(start);
  const done: string[] = [];
  while (!stop.aborted) {
    const names = Object.keys(deeds);
    const name = names[Math.floor(random() * names.length)] ?? '';
    const isDone = deeds[name]?.().then(
      () => true,
      (error: unknown) => !isExpected(error, name),
    );
    done.push((await isDone) ? name : `${name} (refused)`);
    await sleep(random() * MAX_PAUSE_MS);
  }
  return done;
}

function isExpected(thrown: unknown, deed: string): true {
  // What the client does not know itself is the cause of its error.
  const error = hasCode(thrown, 'UNEXPECTED_FAILURE') ? thrown.cause : thrown;
  const isKnown =
    EXPECTED.some((type) => error instanceof type) ||
    hasCode(error, ...EXPECTED_CODES) ||
    isGrpcServiceError(error);
  if (!isKnown && !isTransient(error)) throw new Error(deed, { cause: thrown });
  return true;
}

/** Lets a batch come to its end, by starting it again as often as it takes. @returns what is wrong with its ends, by the journal */
export async function liesOfBatch(batch: BatchOfTest): Promise<string[]> {
  const { handle } = batch;
  while ((await handle.progress()).state !== 'completed') {
    // It may be paused.
    await handle.resume().catch(() => undefined);
    await batch.start({ concurrency: MOST_OPEN });
    await handle.result();
  }
  const ends = await throughRestarts(() => handle.settled());
  const found = ends.length === ITEMS ? [] : [`${ends.length} ends of ${ITEMS} items`];
  for (const [index, { projectId, jobId, prompt }] of batch.requests.entries()) {
    const { workflowId } = await batch.itemHandle(index);
    const posts = batch.posts({ projectId, jobId });
    const processed = posts.filter((post) => post.processed && post.prompt?.text === prompt).length;
    const { outcome, delivery = null } = ends.find((end) => end.workflowId === workflowId) ?? {};
    const [least, most] = { accepted: [1, 1], 'not-sent': [0, 0], rejected: [0, 0] }[String(delivery)] ?? [
      0, 1,
    ];
    if (processed < (least ?? 0) || processed > (most ?? 0))
      found.push(`${workflowId}: processed ${processed} times, ${String(outcome)} ${String(delivery)}`);
  }
  return found;
}
