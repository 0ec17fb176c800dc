import { describe, expect, it } from '@jest/globals';
import type { FollowUpDescription } from '../../src/entries/client';
import { FollowUpError } from '../../src/contract/follow-up-error';
import { checkRetryAll, FINAL_ERRORS, retryAll } from '../../src/client/retry-all';
import { InMemoryFollowUpClient, type SimulatedOutcome } from '../../src/entries/testing';
import { collectAll } from '../harness/workflow-ids';

const request = (jobId: string) => ({ projectId: 'p', jobId, prompt: 'Hello', requestId: 'r' });

/** Returns a client whose list has these follow-ups, and whose retries call `retry`. */
function clientWith(ids: readonly string[], retry: (workflowId: string) => Promise<{ runId: string }>) {
  // eslint-disable-next-line @typescript-eslint/require-await -- a visibility list is asynchronous too
  async function* list() {
    for (const workflowId of ids) yield { workflowId, outcome: 'DeadlineExceeded' } as FollowUpDescription;
  }
  const getHandle = (workflowId: string) => ({ retry: () => retry(workflowId) });
  return { list, getHandle } as unknown as Parameters<typeof retryAll>[0];
}

const started = (workflowId: string) => Promise.resolve({ runId: `run of ${workflowId}` });
const FILTER = { outcome: 'DeadlineExceeded' };

describe('retryAll', () => {
  it('retries each follow-up once, even if the list has it twice, and at most as many as the limit', async () => {
    const retriedIds: string[] = [];
    const ids = Array.from({ length: 40 }, (_, number) => String(number));
    const client = clientWith([...ids, ...ids], (workflowId) => {
      retriedIds.push(workflowId);
      return started(workflowId);
    });
    const results = await collectAll(retryAll(client, FILTER, {}));
    expect(retriedIds).toEqual(ids);
    expect(results.map(({ runId }) => runId)).toEqual(ids.map((id) => `run of ${id}`));
    expect(await collectAll(retryAll(client, FILTER, { limit: 17 }))).toHaveLength(17);
    expect(retriedIds).toHaveLength(40 + 17);
  });

  it('reports an error of one follow-up in its result, and continues with the others', async () => {
    const error = new FollowUpError('RETRY_NOT_ALLOWED', 'It is unknown whether the message arrived.');
    const client = clientWith(['a', 'b', 'c'], (id) => (id === 'b' ? Promise.reject(error) : started(id)));
    const results = await collectAll(retryAll(client, FILTER, {}));
    expect(results.map((result) => [result.runId, result.error])).toEqual([
      ['run of a', null],
      [null, error],
      ['run of c', null],
    ]);
  });

  it.each(FINAL_ERRORS)(
    'ends with %s after the results of the retries that were in progress, and retries nothing more',
    async (code) => {
      const retriedIds: string[] = [];
      const ids = Array.from({ length: 40 }, (_, number) => String(number));
      const client = clientWith(ids, (id) => {
        retriedIds.push(id);
        return id === '3' ? Promise.reject(new FollowUpError(code, 'no')) : started(id);
      });
      const results: unknown[] = [];
      const iterate = async () => {
        for await (const { runId } of retryAll(client, FILTER, {})) results.push(runId);
      };
      await expect(iterate()).rejects.toMatchObject({ code });
      expect(results).toHaveLength(15);
      expect(retriedIds).toHaveLength(16);
    },
  );

  it.each<[unknown, unknown, string]>([
    [{}, {}, 'filter: is empty; set at least one condition, such as outcome or endedAfter'],
    [{ outcome: undefined }, {}, 'filter: is empty'],
    [{ canRetry: false }, {}, 'canRetry: must be left out'],
    [{ canRetry: true }, {}, 'filter: is empty'],
    [{ outcome: 'rejected' }, { limit: 0 }, 'limit: must be a whole number, at least 1; it is 0'],
    [{ outcome: 'rejected' }, { dryRun: 'no' }, 'dryRun: must be true or false; it is "no"'],
    [
      { outcome: 'rejected' },
      { dryrun: true },
      'dryrun: is not a valid option; the valid options are dryRun, ',
    ],
  ])('rejects the filter %j with the options %j before it retries anything', (filter, options, problem) => {
    expect(() => {
      checkRetryAll(filter as object, options as object);
    }).toThrow(problem);
  });

  it('of the in-memory client retries what the client would retry, and its list has only the latest runs', async () => {
    const outcomes: Record<string, SimulatedOutcome> = {
      'not-sent': { end: 'DeadlineExceeded', verdict: 'not-sent' },
      unknown: { end: 'DeadlineExceeded', verdict: 'unknown' },
      cancelled: { end: 'cancelled', verdict: 'not-sent' },
      completed: {},
    };
    const client = new InMemoryFollowUpClient(({ jobId }) => outcomes[jobId] ?? {});
    for (const jobId of Object.keys(outcomes)) await client.execute(request(jobId)).catch(() => undefined);
    const sentBefore = client.sent.length;
    outcomes['not-sent'] = {};
    const retried = await collectAll(client.retryAll({ projectId: 'p' }));
    expect(retried.map(({ followUp }) => followUp.jobId)).toEqual(['not-sent']);
    expect(await client.getHandle('follow-up:p:not-sent:r').result()).toMatchObject({ status: 'completed' });
    expect(client.sent.length - sentBefore).toBe(1);
    const listed = await collectAll(client.list({ projectId: 'p' }));
    expect(listed.map(({ jobId, outcome }) => [jobId, outcome])).toEqual([
      ['not-sent', 'completed'],
      ['completed', 'completed'],
      ['cancelled', 'cancelled'],
      ['unknown', 'DeadlineExceeded'],
    ]);
    expect(await collectAll(client.list({ outcome: 'not-sent', jobId: 'not-sent' }))).toEqual([]);
  });
});
