import { expect, it } from '@jest/globals';
import type { RetryResult } from '../../src/entries/client';
import { eventually } from '../../tools/lib/eventually';
import type { JobFault } from '../harness/follow-up-under-test';
import { sharedEnvironment } from '../harness/shared-environment';
import { collectAll } from '../harness/workflow-ids';

const { open } = sharedEnvironment();

/** Faults after which a follow-up ends with another verdict. */
const NOT_SENT: JobFault = { name: 'status', operation: 'get', times: 1, parameters: { code: 403 } };
const REJECTED: JobFault = { name: 'status', operation: 'message', times: 1, parameters: { code: 422 } };
const UNKNOWN: JobFault = { name: 'reset', operation: 'message', times: 1 };

const jobsOf = (results: readonly RetryResult[]) => results.map(({ followUp }) => followUp.jobId).toSorted();

// Proves P9.
it.concurrent(
  'retryAll sends the messages that were not sent or were rejected, but no message of unknown delivery and no cancelled one',
  async () => {
    const environment = await open();
    const { followUps, sandbox } = environment;
    const { projectId, ...waiting } = environment.newRequest({ status: 'active' });
    const end = async (...faults: JobFault[]) => {
      const request = environment.newRequest({ projectId });
      for (const fault of faults) sandbox.setFault({ ...fault, projectId, jobId: request.jobId });
      await followUps.execute(request).catch(() => undefined);
      return request.jobId;
    };
    const jobs = [await end(NOT_SENT), await end(REJECTED), await end(UNKNOWN), await end(), waiting.jobId];
    const [notSent = '', rejected = ''] = jobs;
    const sends = () => jobs.map((jobId) => environment.posts({ projectId, jobId }).length);
    const cancelled = await followUps.start({ projectId, ...waiting, whenActive: 'wait' });
    const isWaiting = async () => (await cancelled.describe()).phase === 'waiting-for-job';
    await eventually('the follow-up waits for the job', isWaiting);
    await cancelled.cancel();
    await expect(cancelled.result()).rejects.toMatchObject({ code: 'CANCELLED' });
    const listed = () => collectAll(followUps.list({ projectId, canRetry: true }));
    await eventually('the list has three ends', async () => (await listed()).length === 3);

    const wanted = [notSent, rejected].toSorted();
    const dryRun = await collectAll(followUps.retryAll({ projectId }, { dryRun: true }));
    expect(jobsOf(dryRun)).toEqual(wanted);
    for (const result of dryRun) expect(result).toMatchObject({ runId: null, error: null });
    expect(await collectAll(followUps.retryAll({ projectId }, { dryRun: true, limit: 1 }))).toHaveLength(1);
    expect(sends()).toEqual([0, 1, 1, 1, 0]);

    const retried = await collectAll(followUps.retryAll({ projectId }));
    expect(jobsOf(retried)).toEqual(wanted);
    for (const { followUp, runId, error } of retried) {
      expect(error).toBeNull();
      expect(runId).not.toBe(followUp.runId);
      await followUps.getHandle(followUp.workflowId).result();
    }
    expect(sends()).toEqual([1, 2, 1, 1, 0]);
    // The visibility list may still have the earlier runs. Their follow-ups are then rejected.
    for (const { runId } of await collectAll(followUps.retryAll({ projectId }))) expect(runId).toBeNull();
    const named = await collectAll(followUps.retryAll({ projectId, outcome: 'cancelled' }, { dryRun: true }));
    expect(jobsOf(named)).toEqual([waiting.jobId]);
    expect(sends()).toEqual([1, 2, 1, 1, 0]);
  },
);
