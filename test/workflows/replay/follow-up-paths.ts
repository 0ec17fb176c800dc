import type { PollingRequest } from '../../../src/contract/request';
import { eventually } from '../../../tools/lib/eventually';
import type { Environment } from '../../harness/environment';
import { type FollowUpUnderTest, FAST_OPTIONS } from '../../harness/follow-up-under-test';

/** The turn ends when the script ends it. */
export const endless = { turn: { durationMs: null } };

/**
 * The first poll uses a timer. The later polls use retries at intervals of six seconds or more, so that an update arrives between two
 * polls.
 */
const SLOW = { initial: '500ms', growth: 3, maximum: '10m', jitter: 0, timerPolls: 1 } as const;

export const LINK = 'https://example.test/pull/10';

/** With the default `wait`, a follow-up uses the job lock. The requests of the test harness have `send` instead. */
export const WAIT = { whenActive: 'wait' } as const;

/** The connection is reset before the agent service has processed the message. */
export const LOST = { name: 'reset', operation: 'message', times: 1 } as const;

export type Paths = Record<string, (environment: Environment) => Promise<FollowUpUnderTest>>;

/** Each function starts a follow-up that takes one path through the workflow, and performs every other action of this path. */
export const paths: Paths = {
  accepted: (environment) => environment.follow({}, WAIT),
  'ten-polls-by-timers': (environment) => followForPolls(environment, 10, { timerPolls: 'all' }),
  'ten-polls': (environment) => followForPolls(environment, 10),
  'sixty-polls': (environment) => followForPolls(environment, 60),
  'completed-without-link': (environment) => environment.follow({ turn: { outcome: 'no-change' } }),
  'link-late': (environment) =>
    environment.follow(
      { turn: { outcome: 'new-pull-request', reads: 2 } },
      { prLinkTimeout: '30s' },
      {
        name: 'late-link',
        parameters: { reads: 1 },
      },
    ),
  stale: (environment) =>
    environment.follow(
      { pullRequest: true, turn: { reads: 3 } },
      { maxStaleness: '5s' },
      { name: 'stale', parameters: { reads: 1 } },
    ),
  'turn-never-active': (environment) =>
    environment.follow({ turn: { outcome: 'no-change' } }, {}, { name: 'invisible-turn' }),
  'active-job-waited-for': (environment) => environment.follow({ status: 'active' }, WAIT),
  'active-job-waited-for-by-retries': async (environment) => {
    const polling = { initial: '1s', growth: 0, jitter: 0, timerPolls: 0 } as const;
    const following = await environment.follow({ status: 'active', ...endless }, { ...WAIT, polling });
    await untilPolledByRetry(following);
    following.changeJob({ status: 'completed' });
    await following.waitForRequest({ operation: 'message' });
    following.changeJob({ status: 'failed' });
    return following;
  },
  'job-lock-waited-for': async (environment) => {
    const holder = await environment.follow(endless, WAIT);
    await holder.waitForProgress(({ phase }) => phase === 'watching');
    const following = await environment.send({ ...holder.key, ...WAIT });
    await following.waitForProgress(({ phase }) => phase === 'waiting-for-job');
    holder.changeJob({ status: 'completed', prLink: LINK });
    await holder.result();
    await following.waitForRequest({ operation: 'message' }, { atLeast: 2 });
    following.changeJob({ status: 'failed' });
    return following;
  },
  'rejected-active': (environment) => environment.follow({ status: 'active' }, { whenActive: 'reject' }),
  rejected: (environment) =>
    environment.follow({}, WAIT, { name: 'status', operation: 'message', parameters: { code: 403 } }),
  'sent-after-429': (environment) =>
    environment.follow({}, {}, { name: 'http-429', operation: 'message', times: 1 }),
  'sent-after-401': (environment) =>
    environment.follow(
      {},
      WAIT,
      { name: 'status', operation: 'get', times: 2, parameters: { code: 401 } },
      { name: 'status', operation: 'message', times: 1, parameters: { code: 401 } },
    ),
  'delivery-shown-by-read': (environment) => environment.follow({}, {}, { name: 'processed-then-close' }),
  'delivery-unknown': (environment) => environment.follow({}, {}, LOST),
  resent: (environment) => environment.follow({}, { onUnknownDelivery: 'resend' }, LOST),
  'assumed-delivered': (environment) =>
    environment.follow({}, { onUnknownDelivery: 'assume-delivered' }, LOST),
  'decided-not-delivered': async (environment) => {
    const following = await environment.follow({}, { onUnknownDelivery: 'ask' }, LOST);
    await following.waitForProgress(({ phase }) => phase === 'needs-decision');
    await following.update('resolveDelivery', 'not-delivered', following.firstRunId);
    return following;
  },
  'polls-failed': (environment) =>
    environment.follow({}, {}, { name: 'http-503', operation: 'get', times: 2, skip: 1 }),
  'updated-between-timer-polls': async (environment) => {
    const polling = { initial: '15s', maximum: '15s', timerPolls: 'all' } as const;
    const following = await environment.follow(endless, { polling });
    await following.waitForProgress(({ phase }) => phase === 'watching');
    await following.update('extendDeadline', '20m');
    following.changeJob({ status: 'failed' });
    await following.update('pollNow');
    return following;
  },
  'poll-interrupted-by-poll-now': async (environment) => {
    const following = await environment.follow(endless, { ...WAIT, polling: SLOW });
    await untilPolledByRetry(following);
    await following.update('pollNow');
    following.changeJob({ status: 'failed' });
    await following.update('pollNow');
    return following;
  },
  'poll-interrupted-by-cancellation': async (environment) => {
    const following = await environment.follow(endless, { ...WAIT, polling: SLOW });
    await untilPolledByRetry(following);
    await following.handle.cancel();
    return following;
  },
  'poll-interrupted-by-decision': async (environment) => {
    const polling = { ...SLOW, growth: 1, timerPolls: 0 } as const;
    const following = await environment.follow(endless, { onUnknownDelivery: 'ask', polling }, LOST);
    await following.waitForProgress(({ phase }) => phase === 'needs-decision');
    await untilPolledByRetry(following);
    await following.update('resolveDelivery', 'delivered');
    following.changeJob({ status: 'failed' });
    return following;
  },
  'job-not-found': (environment) => environment.send({ projectId: 'nowhere', jobId: 'nobody', ...WAIT }),
  'deadline-exceeded': (environment) => environment.follow(endless, { deadline: '4s' }),
  cancelled: async (environment) => {
    const following = await environment.follow(endless, {
      polling: { ...FAST_OPTIONS.polling, timerPolls: 'all' },
    });
    await following.waitForProgress(({ polls }) => polls > 1);
    await following.handle.cancel();
    return following;
  },
};

/**
 * The Temporal server for these paths suggests continue-as-new after a few polls. With the default settings, the server suggests
 * it at 4,096 events.
 */
export const continuing: Paths = {
  'continued-as-new': async (environment) => {
    const polling = { ...FAST_OPTIONS.polling, timerPolls: 'all' } as const;
    const following = await environment.follow(endless, { ...WAIT, polling });
    const { runId } = await following.handle.describe();
    await following.waitForProgress(({ polls }) => polls >= 10);
    if ((await following.handle.describe()).runId === runId)
      throw new Error('the run did not continue as new');
    following.changeJob({ status: 'completed', prLink: LINK });
    return following;
  },
};

/** Starts a follow-up whose job ends at the poll with this number. */
async function followForPolls(
  environment: Environment,
  polls: number,
  options: PollingRequest = {},
): Promise<FollowUpUnderTest> {
  const polling = { initial: '200ms', growth: 0, jitter: 0, ...options } as const;
  const following = await environment.follow(endless, { ...WAIT, polling });
  // The first GET is the baseline read.
  await following.waitForRequest({ operation: 'get', ending: 'answered' }, { atLeast: polls });
  following.changeJob({ status: 'completed', prLink: LINK });
  return following;
}

/** Waits until `pollJob` has made at least two reads, so that Temporal retries it. */
async function untilPolledByRetry({ handle }: FollowUpUnderTest): Promise<void> {
  await eventually('a retry of pollJob is pending', async () => {
    const { raw } = await handle.describe();
    return raw.pendingActivities?.find(
      ({ activityType, attempt }) => activityType?.name === 'pollJob' && (attempt ?? 0) > 2,
    );
  });
}
