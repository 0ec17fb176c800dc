import { ActivityCancellationType, type ActivityOptions } from '@temporalio/workflow';
import type { Step } from './workflow';

/** A behavior in which the simulated server must equal the real Temporal server. */
export interface Behavior {
  readonly steps: readonly Step[];
  readonly memo?: Readonly<Record<string, unknown>>;
  readonly phase?: string;
  /** The commands that run one after another next to the workflow, separated by `; `. The script ends when the workflow has ended. */
  readonly script?: string;
}

/**
 * The time in milliseconds for events that must come before a timeout, because a worker on a busy machine may need a second. All behaviors
 * are played at the same time, so the longest behavior takes twice this time.
 */
const SLACK = 15_000;

/** The options that a behavior can give its activity. */
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
  undelivered: { taskQueue: 'nobody', scheduleToStartTimeout: 100 },
};

/** Steps of the workflow that wait for a signal of the script. */
const GO = 'wait signal: go';
const END = 'wait signal: end';
/** A step that keeps the workflow task open with a local activity until the gate is opened. Other events are buffered. */
const HOLD_TASK: Step = { activity: 'held', attempts: 'gate held', options: 'local' };

function activity(attempts: string, ...names: string[]) {
  const options = names.reduce<ActivityOptions>((all, name) => ({ ...all, ...OPTIONS[name] }), {});
  return { activity: 'a', attempts, options };
}

/** @param text `OPTIONS: ATTEMPTS => SCRIPT` for one activity; if the script ends with `signal end`, the workflow waits for that signal */
function parseActivityBehavior(text: string, ...steps: Step[]): Behavior {
  const [, options = '', attempts = '', script = ''] =
    /^(?:([\w -]+): )?(.*?)(?: => (.*))?$/.exec(text) ?? [];
  const end = script.endsWith('signal end') ? [END] : [];
  return { steps: [activity(attempts, ...options.split(' ')), ...steps, ...end], script };
}

/** Behaviors of one activity. The values are the input of {@link parseActivityBehavior}. */
const ACTIVITY_BEHAVIORS: Readonly<Record<string, string>> = {
  'a start-to-close timeout has the details of the last heartbeat': 'ends once: beat kept, hang',
  'a start-to-close timeout without a heartbeat has no details': 'short once: hang',
  'a heartbeat timeout has the details of the last heartbeat': 'beats once: beat kept, hang',
  'the attempt after a heartbeat timeout gets the details of the last heartbeat':
    'beats again-soon: beat kept, hang |',
  'a schedule-to-start timeout ends an activity that no worker starts': 'undelivered: ',
  'a schedule-to-close timeout during the backoff has the last failure as its cause':
    'expires: beat kept, fail broken 60000 all',
  'a schedule-to-close timeout of a started attempt has its heartbeat details':
    'expires: fail broken 1 | beat kept, hang',
  'an attempt that times out with no time for another attempt ends the activity with a schedule-to-close timeout':
    'beats expires-late again-late: beat kept, hang',
  'the next attempt gets the heartbeat details that are reported with a failure':
    'beat one, beat two, fail broken 1 |',
  'heartbeat details survive an attempt without details, and the workflow gets the last failure':
    'thrice: beat one, fail first 1 | fail second 1 | fail third 1 3',
  'an activity that is paused during an attempt starts no further attempt until it is unpaused':
    'gate g, fail broken 60000 | => at g; pause; open g; waits-for-attempt 2; unpause',
  'an activity that is paused during the backoff starts its next attempt at once when it is unpaused':
    'fail broken 60000 | => waits-for-attempt 2; pause; unpause',
  'a running attempt is the last one after the maximum number of attempts is lowered':
    'fail one 1 | gate g, fail two => at g; allow-attempts 1; open g',
  'the response to a heartbeat reports a pause': 'beats: alive on => at beats; pause',
  'the next attempt gets the details of a heartbeat whose response reported a pause':
    'gate g, request-heartbeat kept, fail broken 1 | => at g; pause; open g; at paused; waits-for-attempt 2; unpause',
  'a further heartbeat without details removes the details of a heartbeat whose response reported a pause':
    'gate g, request-heartbeat kept, request-heartbeat, fail broken 1 | => at g; pause; open g; at paused; waits-for-attempt 2; unpause',
  'a paused activity whose running attempt completes is completed': 'gate g => at g; pause; open g',
  'after a reset, the server accepts the report of an earlier attempt with the same number':
    'ends again-late: gate own => waits-for-attempt 2; reset-activity; at started 2; open started 1',
  'a reset during the backoff starts attempt 1 at once and keeps the heartbeat details':
    'gate g, beat kept, fail broken 60000 => open g; waits-for-attempt 2; shut g; reset-activity; attempt 1; complete-as by hand',
  'a reset during the first attempt changes nothing':
    'twice: gate g, fail one 1 | fail two 1 | => at g; reset-activity; open g',
  'after a reset during a later attempt, the failure of that attempt is rejected':
    'ends twice: fail one 1 | gate g, fail two 1 => at g; reset-activity; open g',
  'after a reset during a later attempt, the result of that attempt is rejected':
    'ends twice: fail one 1 | gate g => at g; reset-activity; open g',
  'the response to a heartbeat reports a reset, and the server accepts the end of the attempt':
    'beats: alive ends | => at beats; reset-activity',
  'a started activity with one attempt gets another one after the maximum is raised':
    'once: gate g, fail broken 1 | => at g; allow-attempts 2; open g',
  'a client completes an activity by its ID during an attempt': 'hang => attempt 1; complete-as by hand',
  'a client completes an activity by its ID during the backoff':
    'fail broken 60000 => waits-for-attempt 2; complete-as by hand',
  'a terminated workflow is closed at once': 'gate g => at g; terminate',
};

/** Behaviors of an activity that its workflow cancels after the signal `go`. */
const CANCELLATION_BEHAVIORS: Readonly<Record<string, string>> = {
  'with TRY_CANCEL, the workflow gets the cancellation of a started activity at once':
    'tries beats: alive ends => at beats; signal go; knows ActivityTaskCanceled; signal end',
  'with TRY_CANCEL, the workflow gets the cancellation of an activity in its backoff at once':
    'tries: fail broken 60000 => waits-for-attempt 2; signal go; knows ActivityTaskCanceled; signal end',
  'with WAIT_CANCELLATION_COMPLETED, a cancellation during the backoff has the details ACTIVITY_ID_NOT_STARTED':
    'waits: fail broken 60000 => waits-for-attempt 2; signal go',
  'with WAIT_CANCELLATION_COMPLETED, the workflow gets the result of an activity that completes despite the cancellation':
    'waits: gate g => at g; signal go; has ActivityTaskCancelRequested; open g',
  'with WAIT_CANCELLATION_COMPLETED, a failed attempt is not retried after the cancellation':
    'waits: gate g, fail broken => at g; signal go; has ActivityTaskCancelRequested; open g',
  'with WAIT_CANCELLATION_COMPLETED, the response to a heartbeat reports the cancellation':
    'waits beats: alive ends => at beats; signal go',
};

/** Behaviors of workflow tasks, signals, updates, resets and continue-as-new. */
const WORKFLOW_BEHAVIORS: Readonly<Record<string, Behavior>> = {
  'an activity that is cancelled in the task that schedules it leaves no event': {
    steps: [activity(''), 'cancel a'],
  },
  'changed options during the backoff replace the requested delay with the delay of the retry policy': {
    steps: [activity('fail broken 60000 |'), 'timer t 30000', 'wait a: a 2', 'cancel t'],
    script: 'waits-for-attempt 2; allow-attempts 3',
  },
  'the start-to-close timeout of a paused attempt comes only after it is unpaused': {
    steps: [activity('gate g', 'ends', 'once'), `timer t ${2 * SLACK}`],
    script: 'at g; pause; knows TimerFired; unpause',
  },
  'a rejected update leaves no event': { steps: [END], script: 'tasks 1; update reject; signal end' },
  'an update is accepted and completed in one workflow task': {
    steps: [END],
    script: 'tasks 1; update why; signal end',
  },
  'an update whose handler fails has an accepted event': {
    steps: [END],
    script: 'tasks 1; update fail; signal end',
  },
  'events during a workflow task wait for its end, and the workflow handles signals and updates first': {
    steps: [activity('gate a'), GO, HOLD_TASK, END],
    script:
      'at a; signal go; at held; open a; pending 0; signal one; update-behind two; signal end; open held',
  },
  'in one workflow task, the ends of activities come last and in their order': {
    steps: [
      activity('gate a', 'waits'),
      { ...activity('gate b', 'waits'), activity: 'b' },
      GO,
      HOLD_TASK,
      'wait never',
    ],
    script: 'at a; at b; signal go; at held; open b; pending 1; cancel; open a; pending 0; open held',
  },
  'a workflow task that would close the workflow is rejected if another event arrived': {
    steps: [HOLD_TASK],
    script: 'at held; signal news; open held',
  },
  'the cancellation of a workflow cancels its activities and timers': {
    steps: [activity('fail broken 60000', 'waits'), 'timer t 60000'],
    script: 'waits-for-attempt 2; cancel',
  },
  'a reset to the first workflow task applies signals and updates again': {
    steps: ['info ids', 'wait signal: one', activity('gate g'), END],
    script:
      'tasks 1; signal one; at g; update two; reset 0; attempt 1; open g; knows ActivityTaskCompleted; signal end',
  },
  'a reset schedules pending activities again and continues timers': {
    steps: [activity('gate g'), `timer t ${2 * SLACK}`, 'wait signal: one', END],
    script:
      'at g; signal one; tasks 2; reset 1; knows TimerFired; attempt 1; open g; knows ActivityTaskCompleted; signal end',
  },
  'a closed workflow can be reset': {
    steps: ['info ids', END],
    script: 'tasks 1; signal end; closed; see; reset 1',
  },
  'continue-as-new keeps the memo of the start and the latest search attributes': {
    memo: { from: 'start' },
    phase: 'started',
    steps: ['info ids', 'memo more', 'phase later', { again: ['info kept', 'info ids'] }],
    script: 'has WorkflowExecutionCompleted',
  },
  'a query returns the current state of a workflow': {
    steps: [activity('gate g'), END],
    script: 'at g; signal one; tasks 2; see; open g; knows ActivityTaskCompleted; signal end',
  },
};

export const BEHAVIORS: readonly (readonly [name: string, Behavior])[] = [
  ...Object.entries(ACTIVITY_BEHAVIORS).map(([name, text]) => [name, parseActivityBehavior(text)] as const),
  ...Object.entries(CANCELLATION_BEHAVIORS).map(
    ([name, text]) => [name, parseActivityBehavior(text, GO, 'cancel a')] as const,
  ),
  ...Object.entries(WORKFLOW_BEHAVIORS),
];
