/* eslint-disable jest/no-export -- Two test files run the tests of this file. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import {
  type FollowUpClientLike,
  type FollowUpHandleLike,
  followUpWorkflowId,
  type NamedRequest,
  type Phase,
} from '../../src/entries/client';
import { eventually } from '../../tools/lib/eventually';
import { collectWorkflowIds } from '../harness/workflow-ids';

/**
 * How a follow-up behaves. `rejected-once` means that its first run ends before the send with HTTP status 403, and that its next run
 * completes.
 */
export type Scenario = 'completes' | 'works' | 'needs-decision' | 'rejected-once';

/** The client under test, with a simulated or a real Temporal server. */
export interface ContractWorld {
  readonly followUps: FollowUpClientLike;
  /** A client on whose task queue no worker runs. */
  readonly idle: FollowUpClientLike;
  /** Returns a request to a new job. */
  readonly newRequest: (scenario: Scenario) => NamedRequest;
  /** Completes the job of a running follow-up. */
  readonly complete: (request: NamedRequest) => void;
}

const ACCEPTED = { verdict: 'accepted', confirmedBy: 'response', sends: 1 };
const NOT_SENT = { verdict: 'not-sent', confirmedBy: null, sends: 0 };

function toWorkflowId({ projectId, jobId, requestId }: NamedRequest): string {
  return followUpWorkflowId(projectId, jobId, requestId);
}

async function waitForPhase(handle: FollowUpHandleLike, phase: Phase): Promise<void> {
  await eventually(`the follow-up is in the phase ${phase}`, () => handle.progress(), {
    until: (report) => report.from === 'worker' && report.progress.phase === phase,
  });
}

/** Returns each update and the cancellation of a follow-up. */
function controlsOf(handle: FollowUpHandleLike): Record<string, () => Promise<unknown>> {
  return {
    pollNow: () => handle.pollNow(),
    extendDeadline: () => handle.extendDeadline('1h'),
    resolveDelivery: () => handle.resolveDelivery('delivered'),
    cancel: () => handle.cancel(),
  };
}

/** Declares the tests that the client and the in-memory client must both pass. */
export function describeClientContract(name: string, open: () => Promise<ContractWorld>): void {
  describe(`${name}: a follow-up`, () => {
    it('that completes has a result, and a second start attaches to the same run', async () => {
      const { followUps, newRequest } = await open();
      const request = newRequest('completes');
      const { projectId } = request;
      const workflowId = toWorkflowId(request);
      const handle = await followUps.start(request);
      expect(handle).toMatchObject({ workflowId, attached: false, promptCompared: true });
      const result = await handle.result();
      expect(result).toMatchObject({
        status: 'completed',
        receipt: { delivery: ACCEPTED, evidence: 'seen-active' },
      });
      const { runId } = handle;
      expect(await followUps.start(request)).toMatchObject({
        runId,
        attached: 'ended',
        promptCompared: true,
      });
      expect(await followUps.execute(request)).toEqual(result);
      await expect(followUps.start({ ...request, prompt: 'Other' })).rejects.toMatchObject({
        code: 'CONFLICT',
      });
      const described = {
        workflowId,
        runId,
        state: 'completed',
        phase: 'done',
        outcome: 'completed',
        startsAt: null,
      };
      const facts = { verdict: 'accepted', jobStatus: 'completed', workflowTaskFailure: null, receipt: null };
      const { evidence } = (await handle.result()).receipt;
      expect(evidence).not.toBeNull();
      expect((await handle.describe()).evidence).toBe(evidence);
      expect(await handle.describe()).toMatchObject({
        ...described,
        ...facts,
        ...{ projectId, jobId: request.jobId },
      });
      const progress = { phase: 'done', delivery: ACCEPTED };
      expect(await handle.progress()).toMatchObject({ from: 'worker', progress });
      const ended = { code: 'ALREADY_ENDED', state: 'completed', workflowId };
      for (const control of Object.values(controlsOf(handle)))
        await expect(control()).rejects.toMatchObject(ended);
      await expect(handle.retry()).rejects.toMatchObject({
        ...{ code: 'RETRY_NOT_ALLOWED', receipt: { delivery: ACCEPTED } },
        message: expect.stringContaining('The message was accepted.'),
      });
      for (const outcome of ['completed', 'accepted', String(evidence)])
        await eventually('the follow-up is listed', async () =>
          (await collectWorkflowIds(followUps.list({ projectId, outcome }))).includes(workflowId),
        );
      expect(await collectWorkflowIds(followUps.list({ projectId, outcome: 'unknown' }))).toEqual([]);
    });

    it('that runs can be watched, extended and cancelled, and a cancelled one keeps its receipt', async () => {
      const { followUps, newRequest } = await open();
      const request = newRequest('works');
      const { projectId } = request;
      const handle = await followUps.start(request);
      const { workflowId, runId } = handle;
      await waitForPhase(handle, 'watching');
      expect(await followUps.start(request)).toMatchObject({ attached: 'running', runId });
      expect(await handle.describe()).toMatchObject({
        state: 'running',
        endedAt: null,
        outcome: null,
        evidence: null,
      });
      expect(await handle.pollNow()).toMatchObject({ phase: 'watching', job: { status: 'active' } });
      const deadlines = [await handle.extendDeadline('96h'), await handle.extendDeadline('48h')];
      const [later = NaN, sooner] = deadlines.map(({ deadlineAt }) => Date.parse(deadlineAt));
      expect(sooner).toBe(later);
      await expect(handle.resolveDelivery('delivered')).rejects.toMatchObject({
        code: 'UPDATE_REJECTED',
        message:
          `The update of the follow-up ${workflowId} was rejected: the follow-up is watching; ` +
          'a decision is accepted only in the phase needs-decision.',
      });
      await expect(handle.retry()).rejects.toMatchObject({ code: 'STILL_RUNNING', state: 'running' });
      await eventually('the follow-up is listed', async () =>
        (await collectWorkflowIds(followUps.list({ projectId, phase: 'watching' }))).includes(workflowId),
      );
      await handle.cancel();
      const receipt = { delivery: ACCEPTED };
      await expect(handle.result()).rejects.toMatchObject({ code: 'CANCELLED', receipt, job: null });
      const ended = { state: 'cancelled', phase: 'cancelled', outcome: 'cancelled', receipt };
      expect(await handle.describe()).toMatchObject(ended);
      await expect(handle.cancel()).rejects.toMatchObject({ code: 'ALREADY_ENDED', state: 'cancelled' });
    });

    it.each([
      ['delivered', { verdict: 'accepted', confirmedBy: 'operator', sends: 1 }],
      ['not-delivered', { ...ACCEPTED, sends: 2 }],
    ] as const)('of unknown delivery continues after the decision %s', async (decision, delivery) => {
      const { followUps, newRequest, complete } = await open();
      const request = newRequest('needs-decision');
      const handle = await followUps.start(request);
      await waitForPhase(handle, 'needs-decision');
      await handle.resolveDelivery(decision);
      if (decision === 'not-delivered') await waitForPhase(handle, 'watching');
      complete(request);
      expect(await handle.result()).toMatchObject({ status: 'completed', receipt: { delivery } });
    });

    it('that was retried keeps the outcome of each run, and each handle means its own run', async () => {
      const { followUps, newRequest } = await open();
      const request = newRequest('rejected-once');
      const first = await followUps.start(request);
      const { workflowId } = first;
      const rejected = {
        code: 'REJECTED',
        workflowId,
        details: { httpStatus: 403 },
        receipt: { delivery: NOT_SENT },
      };
      await expect(first.result()).rejects.toMatchObject(rejected);
      const second = await followUps.getHandle(workflowId).retry();
      expect(second.runId).not.toBe(first.runId);
      expect(await second.result()).toMatchObject({ status: 'completed', receipt: { delivery: ACCEPTED } });
      await expect(first.result()).rejects.toMatchObject(rejected);
      const { runId } = first;
      const failed = { runId, state: 'failed', outcome: 'FollowUpRejected', verdict: 'not-sent' };
      expect(await first.describe()).toMatchObject(failed);
      expect(await followUps.getHandle(workflowId, runId).describe()).toMatchObject(failed);
      expect(await first.progress()).toMatchObject({ from: 'worker', progress: { phase: 'failed' } });
      for (const control of Object.values(controlsOf(first)))
        await expect(control()).rejects.toMatchObject({ code: 'ALREADY_ENDED', state: 'failed' });
      await expect(first.retry()).rejects.toMatchObject({
        ...{ code: 'RETRY_NOT_ALLOWED', receipt: null },
        message: expect.stringContaining(`was already retried, and the latest run ${second.runId} has ended`),
      });
      const latest = followUps.getHandle(workflowId);
      expect(await latest.describe()).toMatchObject({ runId: second.runId, state: 'completed' });
      expect(await latest.result()).toMatchObject({ status: 'completed' });
      expect(await followUps.start(request)).toMatchObject({ attached: 'ended', runId: second.runId });
    });

    it('with a start delay does not start earlier, and rejects updates until then', async () => {
      const { followUps, newRequest } = await open();
      const request = newRequest('completes');
      const handle = await followUps.start(request, { startDelay: '2h' });
      const { startedAt, startsAt } = await handle.describe();
      expect(Date.parse(startsAt ?? '') - Date.parse(startedAt)).toBe(7_200_000);
      const updates = Object.entries(controlsOf(handle)).filter(([method]) => method !== 'cancel');
      for (const [, update] of updates)
        await expect(update()).rejects.toMatchObject({
          code: 'UPDATE_REJECTED',
          message: `The update of the follow-up ${handle.workflowId} was rejected: the follow-up has not started; it starts at ${startsAt ?? ''}.`,
        });
      const description = { state: 'running', startsAt, phase: 'starting', outcome: null, verdict: null };
      expect(await handle.describe()).toMatchObject(description);
      expect(await followUps.start(request)).toMatchObject({ attached: 'running', runId: handle.runId });
    });

    it('without a worker waits in the phase starting, and updates report the missing worker', async () => {
      const { idle, newRequest } = await open();
      const handle = await idle.start(newRequest('completes'));
      const description = { phase: 'starting', state: 'running', startsAt: null };
      expect(await handle.progress()).toMatchObject({ from: 'server', workers: 0, description });
      const reason = `no worker polls the task queue "${idle.taskQueue}"; start a worker`;
      await expect(handle.pollNow()).rejects.toMatchObject({
        ...{ code: 'WAIT_TIMEOUT', workflowId: handle.workflowId },
        message: `The follow-up ${handle.workflowId} did not respond within 2 s: ${reason}.`,
      });
      const { workflowId } = handle;
      await expect(handle.result({ timeout: 1_000 })).rejects.toMatchObject({
        ...{ code: 'WAIT_TIMEOUT', workflowId },
        message: `The call for the follow-up ${workflowId} did not end within 1 s. The timeout ends only the call.`,
      });
    });

    it('or a run that does not exist is reported with its ID by every method', async () => {
      const { followUps, newRequest } = await open();
      const existing = await followUps.start(newRequest('completes'));
      const runId = randomUUID();
      for (const [workflowId, id] of [['follow-up:a:b:missing'], [existing.workflowId, runId]] as const) {
        const handle = followUps.getHandle(workflowId, id);
        const missing = { code: 'NOT_FOUND', workflowId };
        const reads = [() => handle.result(), () => handle.describe(), () => handle.progress()];
        for (const call of [...reads, ...Object.values(controlsOf(handle))])
          await expect(call()).rejects.toMatchObject(missing);
      }
    });
  });
}
