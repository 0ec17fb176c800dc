import { randomUUID } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { defineSearchAttributeKey } from '@temporalio/common';
import type { FollowUpDescription, FollowUpFilter } from '../../src/entries/client';
import { eventually } from '../../tools/lib/eventually';
import { ENDLESS_TURN } from '../harness/follow-up-under-test';
import { resetToTask, workflowTasks } from '../harness/reset';
import { sharedEnvironment } from '../harness/shared-environment';

const { open, follow } = sharedEnvironment();

const newProject = () => `project-${randomUUID().slice(0, 8)}`;

async function list(filter: FollowUpFilter): Promise<FollowUpDescription[]> {
  const found: FollowUpDescription[] = [];
  for await (const each of (await open()).followUps.list(filter)) found.push(each);
  return found;
}

/** Lists until the condition holds, because the visibility store is eventually consistent. */
function listUntil(filter: FollowUpFilter, until: (found: readonly FollowUpDescription[]) => boolean) {
  return eventually('the list has the expected follow-ups', () => list(filter), { until });
}

/** Starts a run of a workflow that no worker runs, so that it stays open until a test terminates it. */
async function startIdle(workflowId: string, projectId: string): Promise<string> {
  const { client } = await open();
  const handle = await client.workflow.start('followUp', {
    workflowId,
    taskQueue: 'no-worker',
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    typedSearchAttributes: [
      { key: defineSearchAttributeKey('AgentProject', 'KEYWORD'), value: projectId },
      { key: defineSearchAttributeKey('FollowUpPhase', 'KEYWORD'), value: 'starting' },
    ],
  });
  return handle.firstExecutionRunId;
}

// Proves P10.
it.concurrent(
  'after a successful retry, the list has the new run, and the failed run matches no filter any more',
  async () => {
    const environment = await open();
    const request = environment.newRequest();
    const { projectId, jobId } = request;
    environment.sandbox.setFault({
      ...{ name: 'status', projectId, jobId, operation: 'get', times: 1, parameters: { code: 403 } },
    });
    const handle = await environment.followUps.start(request);
    await expect(handle.result()).rejects.toMatchObject({ code: 'REJECTED' });
    const rejected = { projectId, outcome: 'FollowUpRejected', canRetry: true };
    const [failed] = await listUntil(rejected, (found) => found.length === 1);
    expect(failed).toMatchObject({ runId: handle.runId, verdict: 'not-sent' });
    const { runId } = await handle.retry();
    await environment.followUps.getHandle(handle.workflowId).result();
    const [latest, ...others] = await listUntil({ projectId }, ([first]) => first?.outcome === 'completed');
    expect(latest).toMatchObject({ runId, verdict: 'accepted' });
    expect(others).toEqual([]);
    expect(await list(rejected)).toEqual([]);
    expect(await list({ projectId, phase: 'failed' })).toEqual([]);
  },
);

// Proves P10.
it.concurrent('a follow-up that is reset is listed once, with the new run', async () => {
  const following = await follow(ENDLESS_TURN);
  const { handle, key } = following;
  const { projectId } = key;
  await following.waitForProgress(({ polls }) => polls > 0);
  const { runId } = await (await resetToTask(handle, (await workflowTasks(handle)).at(-1))).describe();
  const isNewRun = (found: readonly FollowUpDescription[]) => found.some((each) => each.runId === runId);
  // The follow-ups of this test are started without search attributes, which the workflow sets itself.
  expect(await listUntil({ projectId }, isNewRun)).toMatchObject([{ runId, state: 'running' }]);
  following.changeJob({ status: 'completed' });
  await (await open()).followUps.getHandle(handle.workflowId).result();
  const ended = await listUntil({ projectId }, ([first]) => first?.state === 'completed');
  expect(ended).toMatchObject([{ runId, outcome: 'completed' }]);
});

// Proves P10.
it.concurrent(
  'a list of more runs than one query compares has each latest run once, also if a workflow ID has quotes',
  async () => {
    const { client } = await open();
    const projectId = newProject();
    const names = ["it's", 'a\\b', ...Array.from({ length: 58 }, (_, number) => String(number))];
    const ids = names.map((name) => `${projectId}:${name}`);
    const terminate = async (workflowId: string) => client.workflow.getHandle(workflowId).terminate();
    await Promise.all(ids.map((workflowId) => startIdle(workflowId, projectId)));
    await Promise.all(ids.map(terminate));
    const runIds = await Promise.all(ids.map((workflowId) => startIdle(workflowId, projectId)));
    const hasAll = (found: readonly FollowUpDescription[]) => {
      const found60 = new Set(found.map(({ runId }) => runId));
      return runIds.every((runId) => found60.has(runId));
    };
    const running = await listUntil({ projectId }, hasAll);
    expect(running.map(({ runId }) => runId).toSorted()).toEqual(runIds.toSorted());
    await Promise.all(ids.map(terminate));
    const isEnded = (found: readonly FollowUpDescription[]) =>
      hasAll(found) && found.every(({ state }) => state === 'terminated');
    const ended = await listUntil({ projectId }, isEnded);
    expect(ended.map(({ runId }) => runId).toSorted()).toEqual(runIds.toSorted());
  },
);

it.concurrent('a list has the follow-ups that started and ended in a range of times', async () => {
  const environment = await open();
  const { followUps } = environment;
  const projectId = newProject();
  const first = environment.newRequest({ projectId });
  await followUps.execute(first);
  const completed = { projectId, outcome: 'completed' };
  const [description] = await listUntil(completed, (found) => found.length === 1);
  const second = environment.newRequest({ projectId });
  await followUps.execute(second);
  await listUntil(completed, (found) => found.length === 2);
  const jobsOf = async (filter: FollowUpFilter) =>
    (await list({ projectId, ...filter })).map(({ jobId }) => jobId);
  const startedAt = String(description?.startedAt);
  const endedAt = String(description?.endedAt);
  const afterEnd = new Date(Date.parse(endedAt) + 1);
  // The list is ordered by end time, the latest first.
  expect(await jobsOf({ startedAfter: startedAt })).toEqual([second.jobId, first.jobId]);
  expect(await jobsOf({ startedBefore: startedAt })).toEqual([]);
  expect(await jobsOf({ startedAfter: endedAt })).toEqual([second.jobId]);
  expect(await jobsOf({ endedAfter: startedAt, endedBefore: afterEnd })).toEqual([first.jobId]);
  expect(await jobsOf({ endedBefore: endedAt })).toEqual([]);
});
