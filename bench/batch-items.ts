import { setTimeout as sleep } from 'node:timers/promises';
import { InvalidArgumentError } from 'commander';
import type { FollowUpClient, ItemEnd } from '../src/client';
import { BATCH_WORKFLOW } from '../src/core/names';
import type { FollowUpRequest } from '../src/core/request';
import type { Ground } from './ground';
import { say } from './run';

/* What the benches of batches have in common: the items, the waiting, and how each item is accounted for. */

export const BATCH_ID = 'bench';

/** Of a hundred items: so many go to a job that is not there, and so many lose their message. */
const ABSENT_PERCENT = 2;
const LOST_PERCENT = 2;

/** Quick, so that the engine is measured and not the waiting. */
const QUICK: Partial<FollowUpRequest> = {
  polling: { initial: '2s', growth: 0, maximum: '2s', jitter: 0.1 },
  reconcile: '4s',
  settle: '2s',
  confirm: '4s',
};

export function requestOf({ sandbox }: Ground, index: number, projects: number): FollowUpRequest {
  const projectId = `project-${index % projects}`;
  const percent = index % 100;
  const prompt = 'Please rebase on main and fix the links.';
  if (percent < ABSENT_PERCENT) return { projectId, jobId: `absent-${index}`, prompt, ...QUICK };
  const { jobId } = sandbox.addJob({ projectId, turn: { durationMs: 3_000 } });
  if (percent >= 100 - LOST_PERCENT) {
    sandbox.setFault({ name: 'reset', projectId, jobId, operation: 'message' });
  }
  return { projectId, jobId, prompt, ...QUICK };
}

/** Waits until so many items have settled, and says so now and then. */
export async function settled(followUps: FollowUpClient, wanted: number): Promise<void> {
  for (let told = 0; ;) {
    const report = await followUps.batches.getHandle(BATCH_ID).progress();
    await sleep(1_000);
    const { progress } = report;
    if (progress === null) continue;
    if (progress.settled >= told + progress.items / 20 || progress.settled >= wanted) {
      say(`${(told = progress.settled)} of ${progress.items} settled, ${progress.open} open`);
    }
    if (progress.settled >= wanted) return;
  }
}

/**
 * Every item was processed once, or its end says that it was not sent, or that nobody can tell; what has no end was not
 * processed.
 */
export function checkByJournal(
  { sandbox }: Ground,
  requests: readonly FollowUpRequest[],
  ends: readonly ItemEnd[],
) {
  const processed = new Map<string, number>();
  for (const { projectId, jobId } of sandbox.journal.entries({ operation: 'message', processed: true })) {
    const key = `${projectId ?? ''}/${jobId ?? ''}`;
    processed.set(key, (processed.get(key) ?? 0) + 1);
  }
  const endOf = new Map(ends.map((end) => [`${end.projectId}/${end.jobId}`, end]));
  const told = requests.filter(({ projectId, jobId }) => {
    const key = `${projectId}/${jobId}`;
    const delivery = endOf.get(key)?.delivery;
    // It was not begun.
    if (delivery === undefined) return !processed.has(key);
    if (delivery === 'accepted') return processed.get(key) === 1;
    if (delivery === 'not-sent' || delivery === 'rejected') return !processed.has(key);
    return delivery === 'unknown';
  });
  return {
    ended: endOf.size,
    processed: processed.size,
    deliveryUnknown: ends.filter(({ delivery }) => delivery === 'unknown').length,
    notSent: ends.filter(({ delivery }) => delivery === 'not-sent').length,
    sentTwice: [...processed.values()].filter((count) => count > 1).length,
    accountedFor: told.length,
  };
}

export async function historiesOf({ client }: Ground, items: number) {
  const runs = [];
  for await (const info of client.workflow.list({ query: `WorkflowType = '${BATCH_WORKFLOW}'` }))
    runs.push(info);
  const batchEvents = runs.reduce((sum, info) => sum + info.historyLength, 0);
  return {
    batchRuns: runs.length,
    batchEvents,
    eventsAnItem: batchEvents / items,
    batchKilobytes: runs.reduce((sum, info) => sum + (info.historySize ?? 0), 0) / 1_000,
  };
}

export function wholeNumber(maximum: number) {
  return (text: string): number => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= 1 && value <= maximum) return value;
    throw new InvalidArgumentError(`must be a whole number from 1 to ${maximum}`);
  };
}
