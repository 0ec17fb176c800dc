import { ActivityCancellationType, type ActivityOptions } from '@temporalio/workflow';
import type { Attempts } from './activities';
import { END, endOf, GO, has, isIdle, isPending, SLACK, type Behaviour } from './stage';
import type { Step } from './workflow';

const { TRY_CANCEL, WAIT_CANCELLATION_COMPLETED } = ActivityCancellationType;
const once = { retry: { maximumAttempts: 1 } };

function activity(attempts: Attempts, options: ActivityOptions = {}): Step {
  return { activity: 'a', attempts, options };
}

/** What becomes of an activity. */
export const ACTIVITY_BEHAVIOURS: readonly Behaviour[] = [
  {
    name: 'a start-to-close time-out has the details of the last heartbeat',
    script: async ({ start }) => {
      const attempts: Attempts = [[{ beat: 'kept' }, 'hang']];
      return endOf(await start([activity(attempts, { startToCloseTimeout: SLACK, ...once })]));
    },
    shows: {
      seen: [
        'a: ActivityFailure "Activity task timed out" MAXIMUM_ATTEMPTS_REACHED < TimeoutFailure "activity StartToClose timeout" START_TO_CLOSE "kept"',
      ],
      history: 'Started task ActivityScheduled ActivityStarted ActivityTimedOut task Completed',
    },
  },
  {
    name: 'a start-to-close time-out without a heartbeat has no details',
    script: async ({ start }) => {
      return endOf(await start([activity([['hang']], { startToCloseTimeout: 500, ...once })]));
    },
    shows: {
      seen: [
        'a: ActivityFailure "Activity task timed out" MAXIMUM_ATTEMPTS_REACHED < TimeoutFailure "activity StartToClose timeout" START_TO_CLOSE',
      ],
      history: 'Started task ActivityScheduled ActivityStarted ActivityTimedOut task Completed',
    },
  },
  {
    name: 'a heartbeat time-out has the details of the last heartbeat, and the next attempt gets them',
    script: async ({ start }) => {
      const attempts: Attempts = [[{ beat: 'kept' }, 'hang'], [], []];
      const retry = { initialInterval: 1, maximumAttempts: 2 };
      const other = { activity: 'b', attempts, options: { heartbeatTimeout: SLACK, ...once } };
      return endOf(
        await start([
          activity(attempts, { heartbeatTimeout: SLACK, retry }),
          { wait: 'a: a 2 had "kept"' },
          other,
        ]),
      );
    },
    shows: {
      seen: [
        'a: a 2 had "kept"',
        'b: ActivityFailure "Activity task timed out" MAXIMUM_ATTEMPTS_REACHED < TimeoutFailure "activity Heartbeat timeout" HEARTBEAT "kept"',
      ],
      history:
        'Started task ActivityScheduled ActivityStarted ActivityCompleted task ActivityScheduled ActivityStarted ActivityTimedOut task Completed',
    },
  },
  {
    name: 'a schedule-to-start time-out ends an activity that no worker takes',
    script: async ({ start }) => {
      const options = { taskQueue: 'nobody', scheduleToStartTimeout: 100 };
      return endOf(await start([activity([[]], options)]));
    },
    shows: {
      seen: [
        'a: ActivityFailure "Activity task timed out" TIMEOUT < TimeoutFailure "activity ScheduleToStart timeout" SCHEDULE_TO_START',
      ],
      history: 'Started task ActivityScheduled ActivityTimedOut task Completed',
    },
  },
  {
    name: 'a schedule-to-close time-out in the back-off gives the last failure',
    script: async ({ start }) => {
      const attempts: Attempts = [[{ beat: 'kept' }, { fail: 'broken', againMs: 60_000, details: 'all' }]];
      return endOf(await start([activity(attempts, { scheduleToCloseTimeout: SLACK })]));
    },
    shows: {
      seen: ['a: ActivityFailure "Activity task failed" TIMEOUT < ApplicationFailure "broken" ["all"]'],
      history: 'Started task ActivityScheduled ActivityStarted ActivityFailed task Completed',
    },
  },
  {
    name: 'a schedule-to-close time-out of a started attempt has its details',
    script: async ({ start }) => {
      const attempts: Attempts = [[{ fail: 'broken', againMs: 1 }], [{ beat: 'kept' }, 'hang']];
      return endOf(await start([activity(attempts, { scheduleToCloseTimeout: SLACK })]));
    },
    shows: {
      seen: [
        'a: ActivityFailure "Activity task timed out" TIMEOUT < TimeoutFailure "Not enough time to schedule next retry before activity ScheduleToClose timeout, giving up retrying" SCHEDULE_TO_CLOSE "kept"',
      ],
      history: 'Started task ActivityScheduled ActivityStarted ActivityTimedOut task Completed',
    },
  },
  {
    name: 'an attempt that times out with no time for another one has a schedule-to-close time-out',
    script: async ({ start }) => {
      const options = {
        heartbeatTimeout: SLACK,
        scheduleToCloseTimeout: 2 * SLACK,
        retry: { initialInterval: 60_000 },
      };
      return endOf(await start([activity([[{ beat: 'kept' }, 'hang']], options)]));
    },
    shows: {
      seen: [
        'a: ActivityFailure "Activity task timed out" TIMEOUT < TimeoutFailure "Not enough time to schedule next retry before activity ScheduleToClose timeout, giving up retrying" SCHEDULE_TO_CLOSE "kept"',
      ],
      history: 'Started task ActivityScheduled ActivityStarted ActivityTimedOut task Completed',
    },
  },
  {
    name: 'the details that come with a failure are for the next attempt',
    script: async ({ start }) => {
      const attempts: Attempts = [[{ beat: 'one' }, { beat: 'two' }, { fail: 'broken', againMs: 1 }], []];
      return endOf(await start([activity(attempts)]));
    },
    shows: {
      seen: ['a: a 2 had "two"'],
      history: 'Started task ActivityScheduled ActivityStarted ActivityCompleted task Completed',
    },
  },
  {
    name: 'details are kept when an attempt has none, and the last of all failures is told',
    script: async ({ start }) => {
      const attempts: Attempts = [
        [{ beat: 'one' }, { fail: 'first', againMs: 1 }],
        [{ fail: 'second', againMs: 1 }],
        [{ fail: 'third', details: 3 }],
      ];
      return endOf(await start([activity(attempts, { retry: { maximumAttempts: 3 } })]));
    },
    shows: {
      seen: [
        'a: ActivityFailure "Activity task failed" MAXIMUM_ATTEMPTS_REACHED < ApplicationFailure "third" [3]',
      ],
      history: 'Started task ActivityScheduled ActivityStarted ActivityFailed task Completed',
    },
  },
  {
    name: 'TRY_CANCEL of a started activity is told at once',
    script: async ({ start }) => {
      const options = { cancellationType: TRY_CANCEL, heartbeatTimeout: SLACK };
      const run = await start([activity([[{ cancelled: 'ends' }]], options), GO, { cancel: 'a' }, END]);
      await run.untilReached('beats');
      await run.tell('go');
      await run.until((told) => has('ActivityCanceled')(told) && isIdle(told));
      await run.tell('end');
      return endOf(run);
    },
    shows: {
      seen: [
        'told: go',
        'a: ActivityFailure "Activity cancelled" CANCEL_REQUESTED < CancelledFailure ""',
        'told: end',
      ],
      history:
        'Started task ActivityScheduled Signaled task ActivityCancelRequested ActivityStarted ActivityCanceled task Signaled task Completed',
    },
  },
  {
    name: 'TRY_CANCEL in the back-off is told at once',
    script: async ({ start }) => {
      const attempts: Attempts = [[{ fail: 'broken', againMs: 60_000 }]];
      const run = await start([
        activity(attempts, { cancellationType: TRY_CANCEL }),
        GO,
        { cancel: 'a' },
        END,
      ]);
      await run.until(isPending(2, false));
      await run.tell('go');
      await run.until((told) => has('ActivityCanceled')(told) && isIdle(told));
      await run.tell('end');
      return endOf(run);
    },
    shows: {
      seen: [
        'told: go',
        'a: ActivityFailure "Activity cancelled" CANCEL_REQUESTED < CancelledFailure ""',
        'told: end',
      ],
      history:
        'Started task ActivityScheduled Signaled task ActivityCancelRequested ActivityCanceled task Signaled task Completed',
    },
  },
  {
    name: 'a cancel in the back-off that is waited for says ACTIVITY_ID_NOT_STARTED',
    script: async ({ start }) => {
      const attempts: Attempts = [[{ fail: 'broken', againMs: 60_000 }]];
      const options = { cancellationType: WAIT_CANCELLATION_COMPLETED };
      const run = await start([activity(attempts, options), GO, { cancel: 'a' }]);
      await run.until(isPending(2, false));
      await run.tell('go');
      return endOf(run);
    },
    shows: {
      seen: [
        'told: go',
        'a: ActivityFailure "Activity cancelled" CANCEL_REQUESTED < CancelledFailure "" ["ACTIVITY_ID_NOT_STARTED"]',
      ],
      history:
        'Started task ActivityScheduled Signaled task ActivityCancelRequested ActivityCanceled task Completed',
    },
  },
  {
    name: 'an activity that is cancelled before it is sent leaves no event',
    script: async ({ start }) => {
      return endOf(await start([activity([[]]), { cancel: 'a' }]));
    },
    shows: {
      seen: ['a: ActivityFailure "Activity cancelled" CANCEL_REQUESTED < CancelledFailure ""'],
      history: 'Started task Completed',
    },
  },
  {
    name: 'a cancel that is waited for gives the result of an activity that completes anyway',
    script: async ({ start }) => {
      const options = { cancellationType: WAIT_CANCELLATION_COMPLETED };
      const run = await start([activity([[{ gate: 'g' }]], options), GO, { cancel: 'a' }]);
      await run.untilReached('g');
      await run.tell('go');
      await run.until(has('ActivityCancelRequested'));
      run.gates.open('g');
      return endOf(run);
    },
    shows: {
      seen: ['told: go', 'a: a 1'],
      history:
        'Started task ActivityScheduled Signaled task ActivityCancelRequested ActivityStarted ActivityCompleted task Completed',
    },
  },
  {
    name: 'a cancel that is waited for ends a failed attempt',
    script: async ({ start }) => {
      const options = { cancellationType: WAIT_CANCELLATION_COMPLETED };
      const run = await start([
        activity([[{ gate: 'g' }, { fail: 'broken' }]], options),
        GO,
        { cancel: 'a' },
      ]);
      await run.untilReached('g');
      await run.tell('go');
      await run.until(has('ActivityCancelRequested'));
      run.gates.open('g');
      return endOf(run);
    },
    shows: {
      seen: [
        'told: go',
        'a: ActivityFailure "Activity task failed" CANCEL_REQUESTED < ApplicationFailure "broken"',
      ],
      history:
        'Started task ActivityScheduled Signaled task ActivityCancelRequested ActivityStarted ActivityFailed task Completed',
    },
  },
  {
    name: 'a cancel that is waited for comes with a heartbeat',
    script: async ({ start }) => {
      const options = { cancellationType: WAIT_CANCELLATION_COMPLETED, heartbeatTimeout: SLACK };
      const run = await start([activity([[{ cancelled: 'ends' }]], options), GO, { cancel: 'a' }]);
      await run.untilReached('beats');
      await run.tell('go');
      return endOf(run);
    },
    shows: {
      seen: ['told: go', 'a: ActivityFailure "Activity cancelled" CANCEL_REQUESTED < CancelledFailure ""'],
      history:
        'Started task ActivityScheduled Signaled task ActivityCancelRequested ActivityStarted ActivityCanceled task Completed',
    },
  },
  {
    name: 'an activity that is paused in an attempt has no next one before it goes on',
    script: async ({ start }) => {
      const run = await start([activity([[{ gate: 'g' }, { fail: 'broken', againMs: 60_000 }], []])]);
      await run.untilReached('g');
      await run.pause();
      run.gates.open('g');
      await run.until(({ pending: [first] }) => first?.isStarted === false);
      await run.unpause();
      return endOf(run);
    },
    shows: {
      seen: ['a: a 2'],
      history: 'Started task ActivityScheduled ActivityStarted ActivityCompleted task Completed',
    },
  },
  {
    name: 'an activity that is paused in the back-off goes on at once',
    script: async ({ start }) => {
      const run = await start([activity([[{ fail: 'broken', againMs: 60_000 }], []])]);
      await run.until(isPending(2, false));
      await run.pause();
      await run.unpause();
      return endOf(run);
    },
    shows: {
      seen: ['a: a 2'],
      history: 'Started task ActivityScheduled ActivityStarted ActivityCompleted task Completed',
    },
  },
  {
    name: 'other options in the back-off let it be the one of the policy',
    script: async ({ start }) => {
      const a: Step = activity([[{ fail: 'broken', againMs: 60_000 }], []]);
      const run = await start([a, { timer: 't', ms: 30_000 }, { wait: 'a: a 2' }, { cancel: 't' }]);
      await run.until(isPending(2, false));
      await run.allowAttempts(3);
      return endOf(run);
    },
    shows: {
      seen: ['a: a 2', 't: CancelledFailure "Cancellation scope cancelled"'],
      history:
        'Started task ActivityScheduled TimerStarted ActivityStarted ActivityCompleted task TimerCanceled Completed',
    },
  },
  {
    name: 'an attempt is the last one when fewer are allowed',
    script: async ({ start }) => {
      const attempts: Attempts = [[{ fail: 'one', againMs: 1 }], [{ gate: 'g' }, { fail: 'two' }]];
      const run = await start([activity(attempts)]);
      await run.untilReached('g');
      await run.allowAttempts(1);
      run.gates.open('g');
      return endOf(run);
    },
    shows: {
      seen: ['a: ActivityFailure "Activity task failed" MAXIMUM_ATTEMPTS_REACHED < ApplicationFailure "two"'],
      history: 'Started task ActivityScheduled ActivityStarted ActivityFailed task Completed',
    },
  },
  {
    name: 'a pause comes with a heartbeat',
    script: async ({ start }) => {
      const options = { heartbeatTimeout: SLACK };
      const run = await start([activity([[{ cancelled: 'goes on' }]], options)]);
      await run.untilReached('beats');
      await run.pause();
      return endOf(run);
    },
    shows: {
      seen: ['a: a 1'],
      history: 'Started task ActivityScheduled ActivityStarted ActivityCompleted task Completed',
    },
  },
  {
    name: 'an activity that is paused in an attempt and completes has completed',
    script: async ({ start }) => {
      const run = await start([activity([[{ gate: 'g' }]])]);
      await run.untilReached('g');
      await run.pause();
      run.gates.open('g');
      return endOf(run);
    },
    shows: {
      seen: ['a: a 1'],
      history: 'Started task ActivityScheduled ActivityStarted ActivityCompleted task Completed',
    },
  },
  {
    name: 'a start-to-close time-out of a paused attempt waits until it goes on',
    script: async ({ start }) => {
      const options = { startToCloseTimeout: SLACK, ...once };
      const run = await start([activity([[{ gate: 'g' }]], options), { timer: 't', ms: 2 * SLACK }]);
      await run.untilReached('g');
      await run.pause();
      await run.until((told) => has('TimerFired')(told) && isIdle(told));
      await run.unpause();
      return endOf(run);
    },
    shows: {
      seen: [
        't: over',
        'a: ActivityFailure "Activity task timed out" MAXIMUM_ATTEMPTS_REACHED < TimeoutFailure "activity StartToClose timeout" START_TO_CLOSE',
      ],
      history:
        'Started task ActivityScheduled TimerStarted TimerFired task ActivityStarted ActivityTimedOut task Completed',
    },
  },
  {
    name: 'a heartbeat time-out does not end a paused attempt',
    script: async ({ start }) => {
      const options = { heartbeatTimeout: SLACK, ...once };
      const run = await start([activity([[{ gate: 'g' }]], options), { timer: 't', ms: 2 * SLACK }]);
      await run.untilReached('g');
      await run.pause();
      const { pending } = await run.until((told) => has('TimerFired')(told) && isIdle(told));
      await run.completeById('by hand');
      return { ...(await endOf(run)), pending };
    },
    shows: {
      seen: ['t: over', 'a: by hand'],
      history:
        'Started task ActivityScheduled TimerStarted TimerFired task ActivityStarted ActivityCompleted task Completed',
      pending: [{ attempt: 1, isStarted: true }],
    },
  },
  {
    name: 'a schedule-to-close time-out of an activity that is paused in the back-off waits until it goes on',
    script: async ({ start }) => {
      const attempts: Attempts = [[{ gate: 'g' }, { fail: 'broken', againMs: 1 }], [{ gate: 'h' }]];
      const options = { scheduleToCloseTimeout: SLACK };
      const run = await start([activity(attempts, options), { timer: 't', ms: 2 * SLACK }]);
      await run.untilReached('g');
      await run.pause();
      run.gates.open('g');
      await run.until((told) => has('TimerFired')(told) && isIdle(told));
      await run.unpause();
      // Whether a worker gets it first is a race.
      const { seen } = await endOf(run);
      return { seen };
    },
    shows: {
      seen: [
        't: over',
        'a: ActivityFailure "Activity task timed out" TIMEOUT < TimeoutFailure "Not enough time to schedule next retry before activity ScheduleToClose timeout, giving up retrying" SCHEDULE_TO_CLOSE',
      ],
    },
  },
  {
    name: 'a schedule-to-close time-out does not end a paused attempt',
    script: async ({ start }) => {
      const options = { scheduleToCloseTimeout: SLACK };
      const run = await start([activity([[{ gate: 'g' }]], options), { timer: 't', ms: 2 * SLACK }]);
      await run.untilReached('g');
      await run.pause();
      const { pending } = await run.until((told) => has('TimerFired')(told) && isIdle(told));
      await run.completeById('by hand');
      return { ...(await endOf(run)), pending };
    },
    shows: {
      seen: ['t: over', 'a: by hand'],
      history:
        'Started task ActivityScheduled TimerStarted TimerFired task ActivityStarted ActivityCompleted task Completed',
      pending: [{ attempt: 1, isStarted: true }],
    },
  },
  {
    name: 'after a reset the report of an earlier attempt of the same number counts',
    script: async ({ start }) => {
      const options = { startToCloseTimeout: SLACK, retry: { initialInterval: 60_000 } };
      const run = await start([activity([['own gate']], options)]);
      await run.until(isPending(2, false));
      await run.resetActivity();
      await run.untilReached('a, begun 2');
      run.gates.open('a, begun 1');
      return endOf(run);
    },
    shows: {
      seen: ['a: a 1'],
      history: 'Started task ActivityScheduled ActivityStarted ActivityCompleted task Completed',
    },
  },
  {
    name: 'a reset in the back-off begins the attempts anew, at once, and the details stay',
    script: async ({ start }) => {
      const attempts: Attempts = [[{ beat: 'kept' }, { fail: 'broken', againMs: 60_000 }]];
      const run = await start([activity([[{ gate: 'g' }, ...(attempts[0] ?? [])]])]);
      run.gates.open('g');
      await run.until(isPending(2, false));
      run.gates.shut('g');
      await run.resetActivity();
      await run.until(isPending(1, true));
      await run.completeById('by hand');
      return { ...(await endOf(run)), attempts: run.gates.attempts };
    },
    shows: {
      seen: ['a: by hand'],
      history: 'Started task ActivityScheduled ActivityStarted ActivityCompleted task Completed',
      attempts: [1, 1],
    },
  },
  {
    name: 'a reset of a started first attempt changes nothing',
    script: async ({ start }) => {
      const attempts: Attempts = [
        [{ gate: 'g' }, { fail: 'one', againMs: 1 }],
        [{ fail: 'two', againMs: 1 }],
        [],
      ];
      const run = await start([activity(attempts, { retry: { maximumAttempts: 2 } })]);
      await run.untilReached('g');
      await run.resetActivity();
      run.gates.open('g');
      return { ...(await endOf(run)), attempts: run.gates.attempts };
    },
    shows: {
      seen: ['a: ActivityFailure "Activity task failed" MAXIMUM_ATTEMPTS_REACHED < ApplicationFailure "two"'],
      history: 'Started task ActivityScheduled ActivityStarted ActivityFailed task Completed',
      attempts: [1, 2],
    },
  },
  {
    name: 'a reset of a later attempt that is started refuses its report',
    script: async ({ start }) => {
      const attempts: Attempts = [
        [{ fail: 'one', againMs: 1 }],
        [{ gate: 'g' }, { fail: 'two', againMs: 1 }],
      ];
      const options = { startToCloseTimeout: SLACK, retry: { maximumAttempts: 2 } };
      const run = await start([activity(attempts, options)]);
      await run.untilReached('g');
      await run.resetActivity();
      run.gates.open('g');
      return { ...(await endOf(run)), attempts: run.gates.attempts };
    },
    shows: {
      seen: ['a: ActivityFailure "Activity task failed" MAXIMUM_ATTEMPTS_REACHED < ApplicationFailure "two"'],
      history: 'Started task ActivityScheduled ActivityStarted ActivityFailed task Completed',
      attempts: [1, 2, 2],
    },
  },
  {
    name: 'a reset of a later attempt that is started refuses its result',
    script: async ({ start }) => {
      const attempts: Attempts = [[{ fail: 'one', againMs: 1 }], [{ gate: 'g' }]];
      const options = { startToCloseTimeout: SLACK, retry: { maximumAttempts: 2 } };
      const run = await start([activity(attempts, options)]);
      await run.untilReached('g');
      await run.resetActivity();
      run.gates.open('g');
      return { ...(await endOf(run)), attempts: run.gates.attempts };
    },
    shows: {
      seen: ['a: a 2'],
      history: 'Started task ActivityScheduled ActivityStarted ActivityCompleted task Completed',
      attempts: [1, 2, 2],
    },
  },
  {
    name: 'a reset comes with a heartbeat, and what the attempt ends with counts',
    script: async ({ start }) => {
      const run = await start([activity([[{ cancelled: 'ends' }], []], { heartbeatTimeout: SLACK })]);
      await run.untilReached('beats');
      await run.resetActivity();
      return { ...(await endOf(run)), attempts: run.gates.attempts };
    },
    shows: {
      seen: ['a: a 2 had "alive"'],
      history: 'Started task ActivityScheduled ActivityStarted ActivityCompleted task Completed',
      attempts: [1, 2],
    },
  },
  {
    name: 'a started activity of one attempt gets another if it may',
    script: async ({ start }) => {
      const run = await start([activity([[{ gate: 'g' }, { fail: 'broken', againMs: 1 }], []], once)]);
      await run.untilReached('g');
      await run.allowAttempts(2);
      run.gates.open('g');
      return endOf(run);
    },
    shows: {
      seen: ['a: a 2'],
      history: 'Started task ActivityScheduled ActivityStarted ActivityCompleted task Completed',
    },
  },
  {
    name: 'an activity is completed by its id while an attempt is under way',
    script: async ({ start }) => {
      const run = await start([activity([['hang']])]);
      await run.until(isPending(1, true));
      await run.completeById('by hand');
      return endOf(run);
    },
    shows: {
      seen: ['a: by hand'],
      history: 'Started task ActivityScheduled ActivityStarted ActivityCompleted task Completed',
    },
  },
  {
    name: 'an activity is completed by its id in the back-off',
    script: async ({ start }) => {
      const run = await start([activity([[{ fail: 'broken', againMs: 60_000 }]])]);
      await run.until(isPending(2, false));
      await run.completeById('by hand');
      return endOf(run);
    },
    shows: {
      seen: ['a: by hand'],
      history: 'Started task ActivityScheduled ActivityStarted ActivityCompleted task Completed',
    },
  },
];
