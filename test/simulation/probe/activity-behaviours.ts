import { ActivityCancellationType, type ActivityOptions } from '@temporalio/workflow';
import { type Behaviour, SLACK } from './stage';
import type { Step } from './workflow';

const { TRY_CANCEL: cancellationType, WAIT_CANCELLATION_COMPLETED } = ActivityCancellationType;
const once = { retry: { maximumAttempts: 1 } };
const waits = { cancellationType: WAIT_CANCELLATION_COMPLETED };

/** Steps that wait for the script. */
export const GO = 'wait told: go';
export const END = 'wait told: end';

export function activity(attempts: string, options: ActivityOptions = {}): Step {
  return { activity: 'a', attempts, options };
}

const STARTED = 'Started task ActivityScheduled ActivityStarted';
const COMPLETED = `${STARTED} ActivityCompleted task Completed`;
const FAILED = `${STARTED} ActivityFailed task Completed`;
const TIMED_OUT = `${STARTED} ActivityTimedOut task Completed`;
const CANCEL_REQUESTED = 'Started task ActivityScheduled Signaled task ActivityCancelRequested';

const CANCELLED = 'a: ActivityFailure "Activity cancelled" CANCEL_REQUESTED < CancelledFailure ""';
const failed = (state: string, cause: string) =>
  `a: ActivityFailure "Activity task failed" ${state} < ApplicationFailure ${cause}`;
const timedOut = (kind: string, name: string, details = '') => {
  const state = name.startsWith('Schedule') ? 'TIMEOUT' : 'MAXIMUM_ATTEMPTS_REACHED';
  return `a: ActivityFailure "Activity task timed out" ${state} < TimeoutFailure "activity ${name} timeout" ${kind}${details}`;
};
const OUT_OF_TIME =
  'a: ActivityFailure "Activity task timed out" TIMEOUT < TimeoutFailure "Not enough time to schedule next retry before activity ScheduleToClose timeout, giving up retrying" SCHEDULE_TO_CLOSE';

/** What becomes of an activity. */
export const ACTIVITY_BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  'a start-to-close time-out has the details of the last heartbeat': {
    steps: [activity('beat kept, hang', { startToCloseTimeout: SLACK, ...once })],
    shows: { seen: [timedOut('START_TO_CLOSE', 'StartToClose', ' "kept"')], history: TIMED_OUT },
  },
  'a start-to-close time-out without a heartbeat has no details': {
    steps: [activity('hang', { startToCloseTimeout: 500, ...once })],
    shows: { seen: [timedOut('START_TO_CLOSE', 'StartToClose')], history: TIMED_OUT },
  },
  'a heartbeat time-out has the details of the last heartbeat': {
    steps: [activity('beat kept, hang', { heartbeatTimeout: SLACK, ...once })],
    shows: { seen: [timedOut('HEARTBEAT', 'Heartbeat', ' "kept"')], history: TIMED_OUT },
  },
  'the attempt after a heartbeat time-out gets the details of the last heartbeat': {
    steps: [activity('beat kept, hang |', { heartbeatTimeout: SLACK, retry: { initialInterval: 1 } })],
    shows: { seen: ['a: a 2 had "kept"'], history: COMPLETED },
  },
  'a schedule-to-start time-out ends an activity that no worker takes': {
    steps: [activity('', { taskQueue: 'nobody', scheduleToStartTimeout: 100 })],
    shows: {
      seen: [timedOut('SCHEDULE_TO_START', 'ScheduleToStart')],
      history: 'Started task ActivityScheduled ActivityTimedOut task Completed',
    },
  },
  'a schedule-to-close time-out in the back-off gives the last failure': {
    steps: [activity('beat kept, fail broken 60000 all', { scheduleToCloseTimeout: SLACK })],
    shows: { seen: [failed('TIMEOUT', '"broken" ["all"]')], history: FAILED },
  },
  'a schedule-to-close time-out of a started attempt has its details': {
    steps: [activity('fail broken 1 | beat kept, hang', { scheduleToCloseTimeout: SLACK })],
    shows: { seen: [`${OUT_OF_TIME} "kept"`], history: TIMED_OUT },
  },
  'an attempt that times out with no time for another one has a schedule-to-close time-out': {
    steps: [
      activity('beat kept, hang', {
        ...{ heartbeatTimeout: SLACK, scheduleToCloseTimeout: 2 * SLACK },
        retry: { initialInterval: 60_000 },
      }),
    ],
    shows: { seen: [`${OUT_OF_TIME} "kept"`], history: TIMED_OUT },
  },
  'the details that come with a failure are for the next attempt': {
    steps: [activity('beat one, beat two, fail broken 1 |')],
    shows: { seen: ['a: a 2 had "two"'], history: COMPLETED },
  },
  'details are kept when an attempt has none, and the last of all failures is told': {
    steps: [
      activity('beat one, fail first 1 | fail second 1 | fail third 1 3', { retry: { maximumAttempts: 3 } }),
    ],
    shows: { seen: [failed('MAXIMUM_ATTEMPTS_REACHED', '"third" ["3"]')], history: FAILED },
  },
  'TRY_CANCEL of a started activity is told at once': {
    steps: [activity('alive ends', { cancellationType, heartbeatTimeout: SLACK }), GO, 'cancel a', END],
    script: 'at beats; tell go; knows ActivityCanceled; tell end',
    shows: {
      seen: ['told: go', CANCELLED, 'told: end'],
      history: `${CANCEL_REQUESTED} ActivityStarted ActivityCanceled task Signaled task Completed`,
    },
  },
  'TRY_CANCEL in the back-off is told at once': {
    steps: [activity('fail broken 60000', { cancellationType }), GO, 'cancel a', END],
    script: 'waits-for-attempt 2; tell go; knows ActivityCanceled; tell end',
    shows: {
      seen: ['told: go', CANCELLED, 'told: end'],
      history: `${CANCEL_REQUESTED} ActivityCanceled task Signaled task Completed`,
    },
  },
  'a cancel in the back-off that is waited for says ACTIVITY_ID_NOT_STARTED': {
    steps: [activity('fail broken 60000', waits), GO, 'cancel a'],
    script: 'waits-for-attempt 2; tell go',
    shows: {
      seen: ['told: go', `${CANCELLED} ["ACTIVITY_ID_NOT_STARTED"]`],
      history: `${CANCEL_REQUESTED} ActivityCanceled task Completed`,
    },
  },
  'an activity that is cancelled before it is sent leaves no event': {
    steps: [activity(''), 'cancel a'],
    shows: { seen: [CANCELLED], history: 'Started task Completed' },
  },
  'a cancel that is waited for gives the result of an activity that completes anyway': {
    steps: [activity('gate g', waits), GO, 'cancel a'],
    script: 'at g; tell go; has ActivityCancelRequested; open g',
    shows: {
      seen: ['told: go', 'a: a 1'],
      history: `${CANCEL_REQUESTED} ActivityStarted ActivityCompleted task Completed`,
    },
  },
  'a cancel that is waited for ends a failed attempt': {
    steps: [activity('gate g, fail broken', waits), GO, 'cancel a'],
    script: 'at g; tell go; has ActivityCancelRequested; open g',
    shows: {
      seen: ['told: go', failed('CANCEL_REQUESTED', '"broken"')],
      history: `${CANCEL_REQUESTED} ActivityStarted ActivityFailed task Completed`,
    },
  },
  'a cancel that is waited for comes with a heartbeat': {
    steps: [activity('alive ends', { ...waits, heartbeatTimeout: SLACK }), GO, 'cancel a'],
    script: 'at beats; tell go',
    shows: {
      seen: ['told: go', CANCELLED],
      history: `${CANCEL_REQUESTED} ActivityStarted ActivityCanceled task Completed`,
    },
  },
  'an activity that is paused in an attempt has no next one before it goes on': {
    steps: [activity('gate g, fail broken 60000 |')],
    script: 'at g; pause; open g; waits-for-attempt 2; unpause',
    shows: { seen: ['a: a 2'], history: COMPLETED },
  },
  'an activity that is paused in the back-off goes on at once': {
    steps: [activity('fail broken 60000 |')],
    script: 'waits-for-attempt 2; pause; unpause',
    shows: { seen: ['a: a 2'], history: COMPLETED },
  },
  'other options in the back-off let it be the one of the policy': {
    steps: [activity('fail broken 60000 |'), 'timer t 30000', 'wait a: a 2', 'cancel t'],
    script: 'waits-for-attempt 2; allow-attempts 3',
    shows: {
      seen: ['a: a 2', 't: CancelledFailure "Cancellation scope cancelled"'],
      history:
        'Started task ActivityScheduled TimerStarted ActivityStarted ActivityCompleted task TimerCanceled Completed',
    },
  },
  'an attempt is the last one when fewer are allowed': {
    steps: [activity('fail one 1 | gate g, fail two')],
    script: 'at g; allow-attempts 1; open g',
    shows: { seen: [failed('MAXIMUM_ATTEMPTS_REACHED', '"two"')], history: FAILED },
  },
  'a pause comes with a heartbeat': {
    steps: [activity('alive on', { heartbeatTimeout: SLACK })],
    script: 'at beats; pause',
    shows: { seen: ['a: a 1'], history: COMPLETED },
  },
  'an activity that is paused in an attempt and completes has completed': {
    steps: [activity('gate g')],
    script: 'at g; pause; open g',
    shows: { seen: ['a: a 1'], history: COMPLETED },
  },
  'a start-to-close time-out of a paused attempt waits until it goes on': {
    steps: [activity('gate g', { startToCloseTimeout: SLACK, ...once }), `timer t ${2 * SLACK}`],
    script: 'at g; pause; knows TimerFired; unpause',
    shows: {
      seen: ['t: over', timedOut('START_TO_CLOSE', 'StartToClose')],
      history:
        'Started task ActivityScheduled TimerStarted TimerFired task ActivityStarted ActivityTimedOut task Completed',
    },
  },
  'after a reset the report of an earlier attempt of the same number counts': {
    steps: [activity('gate own', { startToCloseTimeout: SLACK, retry: { initialInterval: 60_000 } })],
    script: 'waits-for-attempt 2; reset-activity; at begun 2; open begun 1',
    shows: { seen: ['a: a 1'], history: COMPLETED },
  },
  'a reset in the back-off begins the attempts anew, at once, and the details stay': {
    steps: [activity('gate g, beat kept, fail broken 60000')],
    script: 'open g; waits-for-attempt 2; shut g; reset-activity; attempt 1; complete-as by hand',
    shows: { seen: ['a: by hand'], history: COMPLETED, attempts: [1, 1] },
  },
  'a reset of a started first attempt changes nothing': {
    steps: [activity('gate g, fail one 1 | fail two 1 |', { retry: { maximumAttempts: 2 } })],
    script: 'at g; reset-activity; open g',
    shows: { seen: [failed('MAXIMUM_ATTEMPTS_REACHED', '"two"')], history: FAILED, attempts: [1, 2] },
  },
  'a reset of a later attempt that is started refuses its report': {
    steps: [
      activity('fail one 1 | gate g, fail two 1', {
        startToCloseTimeout: SLACK,
        retry: { maximumAttempts: 2 },
      }),
    ],
    script: 'at g; reset-activity; open g',
    shows: { seen: [failed('MAXIMUM_ATTEMPTS_REACHED', '"two"')], history: FAILED, attempts: [1, 2, 2] },
  },
  'a reset of a later attempt that is started refuses its result': {
    steps: [activity('fail one 1 | gate g', { startToCloseTimeout: SLACK, retry: { maximumAttempts: 2 } })],
    script: 'at g; reset-activity; open g',
    shows: { seen: ['a: a 2'], history: COMPLETED, attempts: [1, 2, 2] },
  },
  'a reset comes with a heartbeat, and what the attempt ends with counts': {
    steps: [activity('alive ends |', { heartbeatTimeout: SLACK })],
    script: 'at beats; reset-activity',
    shows: { seen: ['a: a 2 had "alive"'], history: COMPLETED, attempts: [1, 2] },
  },
  'a started activity of one attempt gets another if it may': {
    steps: [activity('gate g, fail broken 1 |', once)],
    script: 'at g; allow-attempts 2; open g',
    shows: { seen: ['a: a 2'], history: COMPLETED },
  },
  'an activity is completed by its id while an attempt is under way': {
    steps: [activity('hang')],
    script: 'attempt 1; complete-as by hand',
    shows: { seen: ['a: by hand'], history: COMPLETED },
  },
  'an activity is completed by its id in the back-off': {
    steps: [activity('fail broken 60000')],
    script: 'waits-for-attempt 2; complete-as by hand',
    shows: { seen: ['a: by hand'], history: COMPLETED },
  },
};
