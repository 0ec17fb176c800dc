import { ActivityCancellationType, type ActivityOptions } from '@temporalio/workflow';
import type { Step } from './workflow';

/** What a real server and the simulated one must do alike: the real one says what is right. */
export interface Behavior {
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

/** What a behaviour may say of its activity. */
const OPTIONS: Readonly<Record<string, ActivityOptions>> = {
  tries: { cancellationType: ActivityCancellationType.TRY_CANCEL },
  waits: { cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED },
  once: { retry: { maximumAttempts: 1 } },
  twice: { retry: { maximumAttempts: 2 } },
  thrice: { retry: { maximumAttempts: 3 } },
  'again-soon': { retry: { initialInterval: 1 } },
  'again-late': { retry: { initialInterval: 60_000 } },
  short: { startToCloseTimeout: 500 },
  ends: { startToCloseTimeout: SLACK },
  beats: { heartbeatTimeout: SLACK },
  expires: { scheduleToCloseTimeout: SLACK },
  'expires-late': { scheduleToCloseTimeout: 2 * SLACK },
  unheard: { taskQueue: 'nobody', scheduleToStartTimeout: 100 },
};

/** Steps that wait for the script. */
const GO = 'wait told: go';
const END = 'wait told: end';
/** In a task in which a local activity holds what comes, until its gate is opened. */
const HOLD_TASK: Step = { activity: 'held', attempts: 'gate held', options: 'local' };

function activity(attempts: string, ...names: string[]) {
  const options = names.reduce<ActivityOptions>((all, name) => ({ ...all, ...OPTIONS[name] }), {});
  return { activity: 'a', attempts, options };
}

/** @param words options of an activity and its attempts, and `=>` what is done to it; the workflow waits for `tell end` */
function parseActivityBehavior(words: string, ...steps: Step[]): Behavior {
  const [, options = '', attempts = '', script = ''] =
    /^(?:([\w -]+): )?(.*?)(?: => (.*))?$/.exec(words) ?? [];
  const end = script.endsWith('tell end') ? [END] : [];
  return { steps: [activity(attempts, ...options.split(' ')), ...steps, ...end], script };
}

/** What becomes of an activity, by {@link parseActivityBehavior}. */
const ACTIVITY_BEHAVIORS: Readonly<Record<string, string>> = {
  'a start-to-close time-out has the details of the last heartbeat': 'ends once: beat kept, hang',
  'a start-to-close time-out without a heartbeat has no details': 'short once: hang',
  'a heartbeat time-out has the details of the last heartbeat': 'beats once: beat kept, hang',
  'the attempt after a heartbeat time-out gets the details of the last heartbeat':
    'beats again-soon: beat kept, hang |',
  'a schedule-to-start time-out ends an activity that no worker takes': 'unheard: ',
  'a schedule-to-close time-out in the back-off gives the last failure':
    'expires: beat kept, fail broken 60000 all',
  'a schedule-to-close time-out of a started attempt has its details':
    'expires: fail broken 1 | beat kept, hang',
  'an attempt that times out with no time for another one has a schedule-to-close time-out':
    'beats expires-late again-late: beat kept, hang',
  'the details that come with a failure are for the next attempt': 'beat one, beat two, fail broken 1 |',
  'details are kept when an attempt has none, and the last of all failures is told':
    'thrice: beat one, fail first 1 | fail second 1 | fail third 1 3',
  'an activity that is paused in an attempt has no next one before it goes on':
    'gate g, fail broken 60000 | => at g; pause; open g; waits-for-attempt 2; unpause',
  'an activity that is paused in the back-off goes on at once':
    'fail broken 60000 | => waits-for-attempt 2; pause; unpause',
  'an attempt is the last one when fewer are allowed':
    'fail one 1 | gate g, fail two => at g; allow-attempts 1; open g',
  'a pause comes with a heartbeat': 'beats: alive on => at beats; pause',
  'the details of a heartbeat that is answered with a pause are for the next attempt':
    'gate g, ask kept, fail broken 1 | => at g; pause; open g; at paused; waits-for-attempt 2; unpause',
  'a further heartbeat takes them back':
    'gate g, ask kept, ask, fail broken 1 | => at g; pause; open g; at paused; waits-for-attempt 2; unpause',
  'an activity that is paused in an attempt and completes has completed': 'gate g => at g; pause; open g',
  'after a reset the report of an earlier attempt of the same number counts':
    'ends again-late: gate own => waits-for-attempt 2; reset-activity; at begun 2; open begun 1',
  'a reset in the back-off begins the attempts anew, at once, and the details stay':
    'gate g, beat kept, fail broken 60000 => open g; waits-for-attempt 2; shut g; reset-activity; attempt 1; complete-as by hand',
  'a reset of a started first attempt changes nothing':
    'twice: gate g, fail one 1 | fail two 1 | => at g; reset-activity; open g',
  'a reset of a later attempt that is started refuses its report':
    'ends twice: fail one 1 | gate g, fail two 1 => at g; reset-activity; open g',
  'a reset of a later attempt that is started refuses its result':
    'ends twice: fail one 1 | gate g => at g; reset-activity; open g',
  'a reset comes with a heartbeat, and what the attempt ends with counts':
    'beats: alive ends | => at beats; reset-activity',
  'a started activity of one attempt gets another if it may':
    'once: gate g, fail broken 1 | => at g; allow-attempts 2; open g',
  'an activity is completed by its id while an attempt is under way':
    'hang => attempt 1; complete-as by hand',
  'an activity is completed by its id in the back-off':
    'fail broken 60000 => waits-for-attempt 2; complete-as by hand',
  'a terminated workflow is over at once': 'gate g => at g; terminate',
};

/** What becomes of an activity that its workflow cancels once it is told to go. */
const CANCELLATION_BEHAVIORS: Readonly<Record<string, string>> = {
  'TRY_CANCEL of a started activity is told at once':
    'tries beats: alive ends => at beats; tell go; knows ActivityTaskCanceled; tell end',
  'TRY_CANCEL in the back-off is told at once':
    'tries: fail broken 60000 => waits-for-attempt 2; tell go; knows ActivityTaskCanceled; tell end',
  'a cancel in the back-off that is waited for says ACTIVITY_ID_NOT_STARTED':
    'waits: fail broken 60000 => waits-for-attempt 2; tell go',
  'a cancel that is waited for gives the result of an activity that completes anyway':
    'waits: gate g => at g; tell go; has ActivityTaskCancelRequested; open g',
  'a cancel that is waited for ends a failed attempt':
    'waits: gate g, fail broken => at g; tell go; has ActivityTaskCancelRequested; open g',
  'a cancel that is waited for comes with a heartbeat': 'waits beats: alive ends => at beats; tell go',
};

/** What a workflow is told, and when. */
const WORKFLOW_BEHAVIORS: Readonly<Record<string, Behavior>> = {
  'an activity that is cancelled before it is sent leaves no event': { steps: [activity(''), 'cancel a'] },
  'other options in the back-off let it be the one of the policy': {
    steps: [activity('fail broken 60000 |'), 'timer t 30000', 'wait a: a 2', 'cancel t'],
    script: 'waits-for-attempt 2; allow-attempts 3',
  },
  'a start-to-close time-out of a paused attempt waits until it goes on': {
    steps: [activity('gate g', 'ends', 'once'), `timer t ${2 * SLACK}`],
    script: 'at g; pause; knows TimerFired; unpause',
  },
  'an update that is refused leaves no event': { steps: [END], script: 'tasks 1; ask refuse; tell end' },
  'an update is accepted and completed in one task': { steps: [END], script: 'tasks 1; ask why; tell end' },
  'an update that fails in its handler was accepted': { steps: [END], script: 'tasks 1; ask fail; tell end' },
  'what comes during a task waits for its end; signals and updates are seen first': {
    steps: [activity('gate a'), GO, HOLD_TASK, END],
    script: 'at a; tell go; at held; open a; pending 0; tell one; ask-behind two; tell end; open held',
  },
  'of several things in one task ends of activities are told last, in their order': {
    steps: [
      activity('gate a', 'waits'),
      { ...activity('gate b', 'waits'), activity: 'b' },
      GO,
      HOLD_TASK,
      'wait never',
    ],
    script: 'at a; at b; tell go; at held; open b; pending 1; cancel; open a; pending 0; open held',
  },
  'a task that would close the workflow is taken back if something has come': {
    steps: [HOLD_TASK],
    script: 'at held; tell news; open held',
  },
  'a cancel of a workflow cancels what it waits for': {
    steps: [activity('fail broken 60000', 'waits'), 'timer t 60000'],
    script: 'waits-for-attempt 2; cancel',
  },
  'a reset to the first task applies signals and updates again': {
    steps: ['info ids', 'wait told: one', activity('gate g'), END],
    script:
      'tasks 1; tell one; at g; ask two; reset 0; attempt 1; open g; knows ActivityTaskCompleted; tell end',
  },
  'a reset schedules again what was pending, and timers go on': {
    steps: [activity('gate g'), `timer t ${2 * SLACK}`, 'wait told: one', END],
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

export const BEHAVIORS: readonly (readonly [name: string, Behavior])[] = [
  ...Object.entries(ACTIVITY_BEHAVIORS).map(([name, words]) => [name, parseActivityBehavior(words)] as const),
  ...Object.entries(CANCELLATION_BEHAVIORS).map(
    ([name, words]) => [name, parseActivityBehavior(words, GO, 'cancel a')] as const,
  ),
  ...Object.entries(WORKFLOW_BEHAVIORS),
];
