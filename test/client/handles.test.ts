import { describe, expect, it } from '@jest/globals';
import {
  ConflictError,
  DeliveryUnknownError,
  FollowUpError,
  InvalidRequestError,
  JobNotFoundError,
} from '../../src/client';
import { BatchOfTest, endless } from '../harness/batch-of-test';
import { sharedEnvironment } from '../harness/shared-environment';
import { clientOf, request, untilPolled } from './client-under-test';

const open = sharedEnvironment();

describe('a handle', () => {
  it.concurrent('ends its waiting by the signal, and the follow-up goes on', async () => {
    const environment = await open();
    const followUps = clientOf(environment);
    const asked = request(environment, null);
    const handle = await followUps.start(asked);
    const reason = new Error('the caller goes home');
    const controller = new AbortController();
    const waiting = handle.result({ signal: controller.signal });
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(handle.result({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect((await handle.describe()).state).toBe('running');
    await untilPolled(followUps, handle.workflowId);
    environment.sandbox.changeJob(asked, { status: 'completed' });
    expect((await followUps.getHandle(handle.workflowId).result()).status).toBe('completed');
  });

  it.concurrent('is printed as what the start has found, without its connection', async () => {
    const environment = await open();
    const handle = await clientOf(environment).start(request(environment));
    expect(Object.keys(JSON.parse(JSON.stringify(handle)) as object).sort()).toEqual(
      ['attached', 'differences', 'promptCompared', 'requestId', 'runId', 'workflowId'].sort(),
    );
    await handle.result();
  });
});

describe('an error of the client', () => {
  it.concurrent('has a stable code, and what is known of the follow-up', async () => {
    const environment = await open();
    const followUps = clientOf(environment);
    const { projectId } = request(environment);
    const missing = { projectId, jobId: 'nobody', prompt: 'Hello.', requestId: 'one' };
    const error: unknown = await followUps.execute(missing).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(FollowUpError);
    expect(error).toBeInstanceOf(JobNotFoundError);
    expect(error).not.toBeInstanceOf(DeliveryUnknownError);
    expect(error).toMatchObject({
      code: 'JOB_NOT_FOUND',
      workflowId: expect.stringContaining(':nobody:one'),
      job: null,
      receipt: { delivery: { verdict: 'not-sent' } },
    });
    const invalid = followUps.start({ ...missing, prompt: '' });
    await expect(invalid).rejects.toMatchObject({ code: 'INVALID_REQUEST', workflowId: null });
    await expect(invalid).rejects.toBeInstanceOf(InvalidRequestError);
    const taken = followUps.start({ ...missing, prompt: 'Something else.' });
    await expect(taken).rejects.toMatchObject({ code: 'CONFLICT' });
    await expect(taken).rejects.toBeInstanceOf(ConflictError);
  });
});

describe('the results of a batch', () => {
  it.concurrent('come live, in the order of settling, until the batch has ended', async () => {
    const batch = new BatchOfTest(await open());
    const slow = batch.add(endless);
    batch.add();
    await batch.start({ concurrency: 2 });
    await batch.sent(2);
    const seen: { jobId: string; state: string }[] = [];
    for await (const { jobId } of batch.handle.results()) {
      seen.push({ jobId, state: (await batch.handle.describe()).state });
      batch.endTurns();
    }
    // The first end came while the batch was running.
    expect(seen).toMatchObject([{ state: 'running' }, { jobId: slow.jobId }]);
    expect((await batch.handle.result()).state).toBe('done');
  });

  it.concurrent('end by the signal, and the batch goes on', async () => {
    const batch = new BatchOfTest(await open());
    batch.add(endless);
    await batch.start();
    const reason = new Error('enough');
    const read = async () => {
      for await (const end of batch.handle.results({ signal: AbortSignal.timeout(1_500) }))
        throw new Error(end.jobId);
    };
    await expect(read()).rejects.toMatchObject({ name: 'TimeoutError' });
    const aborted = batch.handle.results({ signal: AbortSignal.abort(reason) });
    await expect(aborted.next()).rejects.toBe(reason);
    expect((await batch.handle.describe()).state).toBe('running');
    batch.endTurns();
    expect((await batch.handle.result()).state).toBe('done');
  });
});
