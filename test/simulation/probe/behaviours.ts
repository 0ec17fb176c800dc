import { ActivityCancellationType, type ActivityOptions } from '@temporalio/workflow';
import type { Step } from './workflow';

/** What a real server and the simulated one must do alike: the real one says what is right. */
export interface Behaviour {
  readonly steps: readonly Step[];
  readonly memo?: Readonly<Record<string, unknown>>;
  readonly phase?: string;
  /** What is done meanwhile, one after the other: a verb and its word each. Then the workflow ends. */
  readonly script?: string;
}

/**
 * Milliseconds of the server's own clock for what must come before a time-out: a worker that is kept busy by other programs
 * takes a second. All behaviours are played at once, so the longest takes two of them.
 */
const SLACK = 15_000;

const tries = { cancellationType: ActivityCancellationType.TRY_CANCEL };
const waits = { cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED };
const once = { retry: { maximumAttempts: 1 } };
const twice = { retry: { maximumAttempts: 2 } };
const ends = { startToCloseTimeout: SLACK };
const beats = { heartbeatTimeout: SLACK };

/** Steps that wait for the script. */
const GO = 'wait told: go';
const END = 'wait told: end';
/** In a task in which a local activity holds what comes, until its gate is opened. */
const HELD: Step = { local: 'held', attempts: 'gate held' };

function activity(attempts: string, options: ActivityOptions = {}): Step {
  return { activity: 'a', attempts, options };
}

/** @param words the attempts of an activity, and `=>` what is done to it */
function one(words: string, options?: ActivityOptions, ...steps: Step[]): Behaviour {
  const [attempts = '', script = ''] = words.split(' => ');
  return { steps: [activity(attempts, options), ...steps], script };
}

/** An activity that is cancelled once it is told to go. */
function cancelled(words: string, options: ActivityOptions, ...steps: Step[]): Behaviour {
  return one(words, options, GO, 'cancel a', ...steps);
}

/** What becomes of an activity. */
const OF_ACTIVITIES: Readonly<Record<string, Behaviour>> = {
  'a start-to-close time-out has the details of the last heartbeat': one('beat kept, hang', {
    ...ends,
    ...once,
  }),
  'a start-to-close time-out without a heartbeat has no details': one('hang', {
    startToCloseTimeout: 500,
    ...once,
  }),
  'a heartbeat time-out has the details of the last heartbeat': one('beat kept, hang', { ...beats, ...once }),
  'the attempt after a heartbeat time-out gets the details of the last heartbeat': one('beat kept, hang |', {
    ...beats,
    retry: { initialInterval: 1 },
  }),
  'a schedule-to-start time-out ends an activity that no worker takes': one('', {
    taskQueue: 'nobody',
    scheduleToStartTimeout: 100,
  }),
  'a schedule-to-close time-out in the back-off gives the last failure': one(
    'beat kept, fail broken 60000 all',
    { scheduleToCloseTimeout: SLACK },
  ),
  'a schedule-to-close time-out of a started attempt has its details': one(
    'fail broken 1 | beat kept, hang',
    { scheduleToCloseTimeout: SLACK },
  ),
  'an attempt that times out with no time for another one has a schedule-to-close time-out': one(
    'beat kept, hang',
    {
      ...beats,
      scheduleToCloseTimeout: 2 * SLACK,
      retry: { initialInterval: 60_000 },
    },
  ),
  'the details that come with a failure are for the next attempt': one('beat one, beat two, fail broken 1 |'),
  'details are kept when an attempt has none, and the last of all failures is told': one(
    'beat one, fail first 1 | fail second 1 | fail third 1 3',
    { retry: { maximumAttempts: 3 } },
  ),
  'TRY_CANCEL of a started activity is told at once': cancelled(
    'alive ends => at beats; tell go; knows ActivityTaskCanceled; tell end',
    { ...tries, ...beats },
    END,
  ),
  'TRY_CANCEL in the back-off is told at once': cancelled(
    'fail broken 60000 => waits-for-attempt 2; tell go; knows ActivityTaskCanceled; tell end',
    tries,
    END,
  ),
  'a cancel in the back-off that is waited for says ACTIVITY_ID_NOT_STARTED': cancelled(
    'fail broken 60000 => waits-for-attempt 2; tell go',
    waits,
  ),
  'an activity that is cancelled before it is sent leaves no event': { steps: [activity(''), 'cancel a'] },
  'a cancel that is waited for gives the result of an activity that completes anyway': cancelled(
    'gate g => at g; tell go; has ActivityTaskCancelRequested; open g',
    waits,
  ),
  'a cancel that is waited for ends a failed attempt': cancelled(
    'gate g, fail broken => at g; tell go; has ActivityTaskCancelRequested; open g',
    waits,
  ),
  'a cancel that is waited for comes with a heartbeat': cancelled('alive ends => at beats; tell go', {
    ...waits,
    ...beats,
  }),
  'an activity that is paused in an attempt has no next one before it goes on': one(
    'gate g, fail broken 60000 | => at g; pause; open g; waits-for-attempt 2; unpause',
  ),
  'an activity that is paused in the back-off goes on at once': one(
    'fail broken 60000 | => waits-for-attempt 2; pause; unpause',
  ),
  'other options in the back-off let it be the one of the policy': {
    steps: [activity('fail broken 60000 |'), 'timer t 30000', 'wait a: a 2', 'cancel t'],
    script: 'waits-for-attempt 2; allow-attempts 3',
  },
  'an attempt is the last one when fewer are allowed': one(
    'fail one 1 | gate g, fail two => at g; allow-attempts 1; open g',
  ),
  'a pause comes with a heartbeat': one('alive on => at beats; pause', beats),
  'the details of a heartbeat that is answered with a pause are for the next attempt': one(
    'gate g, ask kept, fail broken 1 | => at g; pause; open g; at paused; waits-for-attempt 2; unpause',
  ),
  'a further heartbeat takes them back': one(
    'gate g, ask kept, ask, fail broken 1 | => at g; pause; open g; at paused; waits-for-attempt 2; unpause',
  ),
  'an activity that is paused in an attempt and completes has completed': one(
    'gate g => at g; pause; open g',
  ),
  'a start-to-close time-out of a paused attempt waits until it goes on': {
    steps: [activity('gate g', { ...ends, ...once }), `timer t ${2 * SLACK}`],
    script: 'at g; pause; knows TimerFired; unpause',
  },
  'after a reset the report of an earlier attempt of the same number counts': one(
    'gate own => waits-for-attempt 2; reset-activity; at begun 2; open begun 1',
    { ...ends, retry: { initialInterval: 60_000 } },
  ),
  'a reset in the back-off begins the attempts anew, at once, and the details stay': one(
    'gate g, beat kept, fail broken 60000 => open g; waits-for-attempt 2; shut g; reset-activity; attempt 1; complete-as by hand',
  ),
  'a reset of a started first attempt changes nothing': one(
    'gate g, fail one 1 | fail two 1 | => at g; reset-activity; open g',
    twice,
  ),
  'a reset of a later attempt that is started refuses its report': one(
    'fail one 1 | gate g, fail two 1 => at g; reset-activity; open g',
    { ...ends, ...twice },
  ),
  'a reset of a later attempt that is started refuses its result': one(
    'fail one 1 | gate g => at g; reset-activity; open g',
    { ...ends, ...twice },
  ),
  'a reset comes with a heartbeat, and what the attempt ends with counts': one(
    'alive ends | => at beats; reset-activity',
    beats,
  ),
  'a started activity of one attempt gets another if it may': one(
    'gate g, fail broken 1 | => at g; allow-attempts 2; open g',
    once,
  ),
  'an activity is completed by its id while an attempt is under way': one(
    'hang => attempt 1; complete-as by hand',
  ),
  'an activity is completed by its id in the back-off': one(
    'fail broken 60000 => waits-for-attempt 2; complete-as by hand',
  ),
};

/** What a workflow is told, and when. */
const OF_WORKFLOWS: Readonly<Record<string, Behaviour>> = {
  'an update that is refused leaves no event': { steps: [END], script: 'tasks 1; ask refuse; tell end' },
  'an update is accepted and completed in one task': {
    steps: [END],
    script: 'tasks 1; ask why; tell end',
  },
  'an update that fails in its handler was accepted': {
    steps: [END],
    script: 'tasks 1; ask fail; tell end',
  },
  'what comes during a task waits for its end; signals and updates are seen first': {
    steps: [activity('gate a'), GO, HELD, END],
    script: 'at a; tell go; at held; open a; pending 0; tell one; ask-behind two; tell end; open held',
  },
  'of several things in one task ends of activities are told last, in their order': {
    steps: [
      activity('gate a', waits),
      { activity: 'b', attempts: 'gate b', options: waits },
      ...[GO, HELD, 'wait never'],
    ],
    script: 'at a; at b; tell go; at held; open b; pending 1; cancel; open a; pending 0; open held',
  },
  'a task that would close the workflow is taken back if something has come': {
    steps: [HELD],
    script: 'at held; tell news; open held',
  },
  'a cancel of a workflow cancels what it waits for': {
    steps: [activity('fail broken 60000', waits), 'timer t 60000'],
    script: 'waits-for-attempt 2; cancel',
  },
  'a terminated workflow is over at once': one('gate g => at g; terminate'),
  'a reset to the first task applies signals and updates again': {
    steps: ['info ids', 'wait told: one', activity('gate g'), END],
    script:
      'tasks 1; tell one; at g; ask two; reset 0; attempt 1; open g; knows ActivityTaskCompleted; tell end',
  },
  'a reset schedules again what was pending, and timers go on': {
    steps: [activity('gate g'), `timer t ${SLACK}`, 'wait told: one', END],
    script:
      'at g; tell one; tasks 2; reset 1; knows TimerFired; attempt 1; open g; knows ActivityTaskCompleted; tell end',
  },
  'a closed workflow can be reset': {
    steps: ['info ids', END],
    script: 'tasks 1; tell end; closed; see; reset 1',
  },
  'continue-as-new keeps the memo of the start and the latest search attributes': {
    memo: { from: 'start' },
    phase: 'begun',
    steps: ['info ids', 'memo more', 'phase later', { again: ['info kept', 'info ids'] }],
    script: 'has WorkflowExecutionCompleted',
  },
  'a query sees a workflow as it is': {
    steps: [activity('gate g'), END],
    script: 'at g; tell one; tasks 2; see; open g; knows ActivityTaskCompleted; tell end',
  },
};

export const BEHAVIOURS = Object.entries({ ...OF_ACTIVITIES, ...OF_WORKFLOWS });
