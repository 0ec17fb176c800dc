import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import type { JobKey } from '../../../sandbox';
import { QUERY_PROGRESS } from '../../../src/contract/names';
import type { FollowUpProgress } from '../../../src/contract/result';
import { Environment } from '../../harness/environment';
import { eventually } from '../../../tools/lib/eventually';
import {
  ACCEPTED_BY_RESPONSE,
  fetchFailure,
  newTaskQueues,
  NOT_SENT_DELIVERY,
  FAST_OPTIONS,
} from '../../harness/follow-up-under-test';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open, follow } = sharedEnvironment({ skipsTime: true });

it.concurrent(
  'sends the message once, and returns the final job with its pull request and the receipt',
  async () => {
    // The turn needs more reads than the two polls with timers, so that `pollJob` makes the later polls.
    const following = await follow({ turn: { reads: 6 } });
    expect(await following.result()).toEqual({
      ...(await open()).sandbox.job(following.key).job,
      status: 'completed',
      prLink: expect.stringContaining('/pull/'),
      receipt: {
        requestId: following.request.requestId,
        delivery: ACCEPTED_BY_RESPONSE,
        evidence: 'seen-active',
        baseline: { status: 'completed', prLink: null, archivedAt: null },
        promptDigest: createHash('sha256').update(following.request.prompt).digest('hex'),
        polls: following.readCount() - 1,
        sentAt: expect.stringMatching(/Z$/),
        endedAt: expect.stringMatching(/Z$/),
        responseCounts: { active: 5, completed: following.readCount() - 6 },
      },
    });
    const prompt = expect.objectContaining({ text: 'Fix the broken links.' });
    expect(following.posts()).toMatchObject([{ processed: true, prompt }]);
    const { typedSearchAttributes } = await following.handle.describe();
    const attributes = typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]);
    expect(Object.fromEntries(attributes)).toMatchObject({
      FollowUpOutcome: ['completed', 'accepted', 'seen-active'],
      ...{ FollowUpPhase: 'done', AgentJobStatus: 'completed' },
      ...{ AgentProject: following.key.projectId, AgentJob: following.key.jobId },
    });
  },
);

it.concurrent('a request without a request ID has the workflow ID as its request ID', async () => {
  const environment = await open();
  const handle = await environment.start('nightly/42', { ...environment.addJob(), prompt: 'x' });
  const receipt = { requestId: 'nightly/42' };
  expect(await handle.result()).toMatchObject({ status: 'completed', receipt });
});

describe('the deadline', () => {
  const DELAY = '2h';
  const DEADLINE = '1h';
  const overdue = (key: JobKey, handle: WorkflowHandle) =>
    fetchFailure(handle).then(async ({ type, details }) => {
      const requests = (await open()).sandbox.journal.entries(key);
      return { type, delivery: details.receipt.delivery, requests };
    });
  const NOTHING = { type: 'DeadlineExceeded', delivery: NOT_SENT_DELIVERY, requests: [] };

  it.concurrent('counts from the end of the start delay that FollowUpClient sets', async () => {
    const environment = await open();
    const request = { ...environment.newRequest(), deadline: DEADLINE } as const;
    const handle = await environment.followUps.start(request, { startDelay: DELAY });
    expect(await handle.result()).toMatchObject({
      status: 'completed',
      receipt: { delivery: ACCEPTED_BY_RESPONSE },
    });
    const { deadlineAt, startedAt } = await timesOf(handle.workflowId);
    expect(deadlineAt - startedAt).toBe(3 * 3_600_000);
    expect(environment.posts(request)).toHaveLength(1);
  });

  it.concurrent(
    'includes the start delay that another client sets: no message is sent after the deadline',
    async () => {
      const environment = await open();
      const key = environment.addJob();
      const handle = await environment.client.workflow.start('followUp', {
        taskQueue: environment.taskQueue,
        workflowId: `delayed/${key.projectId}`,
        startDelay: DELAY,
        args: [{ ...key, prompt: 'x', deadline: DEADLINE }],
      });
      expect(await overdue(key, handle)).toEqual(NOTHING);
    },
  );

  it.concurrent(
    'includes the time in which no worker ran: no message is sent after the deadline',
    async () => {
      const environment = await open();
      const taskQueues = newTaskQueues();
      const key = environment.addJob();
      const request = { ...key, prompt: 'x', ...FAST_OPTIONS, deadline: '2s' } as const;
      const handle = await environment.client.workflow.start('followUp', {
        taskQueue: taskQueues.followUp,
        workflowId: `weekend/${key.projectId}`,
        args: [request],
      });
      await eventually('the deadline has passed', async () => {
        const { startTime } = await handle.describe();
        return Date.now() > startTime.getTime() + 2_000;
      });
      const environmentAfterDeadline = await Environment.open({ taskQueues });
      expect(await overdue(key, handle)).toEqual(NOTHING);
      // The worker did not read the job either.
      expect(environmentAfterDeadline.sandbox.journal.entries(key)).toEqual([]);
      await environmentAfterDeadline.close();
    },
  );

  async function timesOf(workflowId: string) {
    const handle = (await open()).client.workflow.getHandle(workflowId);
    const { deadlineAt } = await handle.query<FollowUpProgress>(QUERY_PROGRESS);
    return { deadlineAt: Date.parse(deadlineAt), startedAt: (await handle.describe()).startTime.getTime() };
  }
});

it.concurrent.each([
  ['null', null, ['must be one JSON object']],
  ['mistakes', { projectId: 'bad', jobId: '', prompt: 7, poling: {} }, ['jobId: ', 'prompt: ', '"poling": ']],
  // A client that decodes Latin-1 as UTF-8 creates such a prompt.
  ['U+FFFD', { projectId: 'bad', jobId: 'j', prompt: 'Fix the caf\ufffd page.' }, ['prompt: ', 'U+FFFD']],
  // A gateway that decodes the path before routing would request another path with the admin key.
  ['dots', { projectId: 'bad', jobId: 'x/../../other', prompt: 'x' }, ['jobId: ', '..']],
])(
  'an invalid input (%s) fails as InvalidRequest with every problem, and nothing is read or sent',
  async (name, input, expected) => {
    const environment = await open();
    const { type, message, details } = await fetchFailure(
      await environment.start(`bad-input-${name}`, input),
    );
    expect(type).toBe('InvalidRequest');
    for (const text of expected) expect(message).toContain(text);
    expect(details).toMatchObject({ job: null, receipt: { delivery: NOT_SENT_DELIVERY } });
    expect(environment.sandbox.journal.entries({ projectId: 'bad' })).toEqual([]);
  },
);
