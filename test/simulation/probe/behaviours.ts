import type { ActivityOptions } from '@temporalio/common';
import { ActivityCancellationType, ParentClosePolicy, WorkflowIdReusePolicy } from '@temporalio/workflow';
import type { Attempts } from './activities';
import { endOf, type Stage, type Told } from './stage';
import type { Step } from './workflow';

export interface Behaviour {
  readonly name: string;
  /** @returns what was seen */
  readonly script: (stage: Stage) => Promise<unknown>;
  readonly expected: unknown;
}

const once = { retry: { maximumAttempts: 1 } };

function activity(attempts: Attempts, options: ActivityOptions = {}): Step {
  return { activity: 'a', attempts, options };
}

const { TRY_CANCEL, WAIT_CANCELLATION_COMPLETED } = ActivityCancellationType;
const go: Step = { wait: 'told: go' };
const end: Step = { wait: 'told: end' };
const isPending =
  (attempt: number, isStarted: boolean) =>
  ({ pending: [first] }: Told) =>
    first?.attempt === attempt && first.isStarted === isStarted;
const has =
  (type: string) =>
  ({ history }: Told) =>
    history.includes(type);

const isIdle = ({ history }: Told) => history.at(-1) === 'task';

/** A task in which a local activity holds what comes, until the gate is opened. */
const held: Step[] = [{ local: 'held', attempts: [[{ gate: 'held' }]] }];

export const scripts: Record<string, (stage: Stage) => Promise<unknown>> = {
  'a start-to-close time-out has the details of the last heartbeat': async ({ start }) => {
    const attempts: Attempts = [[{ beat: 'kept' }, 'hang']];
    return endOf(await start([activity(attempts, { startToCloseTimeout: 500, ...once })]));
  },
  'a start-to-close time-out without a heartbeat has no details': async ({ start }) => {
    return endOf(await start([activity([['hang']], { startToCloseTimeout: 500, ...once })]));
  },
  'a heartbeat time-out has the details of the last heartbeat, and the next attempt gets them': async ({
    start,
  }) => {
    const attempts: Attempts = [[{ beat: 'kept' }, 'hang'], [], []];
    const retry = { initialInterval: 1, maximumAttempts: 2 };
    const other = { activity: 'b', attempts, options: { heartbeatTimeout: 500, ...once } };
    return endOf(
      await start([
        activity(attempts, { heartbeatTimeout: 500, retry }),
        { wait: 'a: a 2 had "kept"' },
        other,
      ]),
    );
  },
  'a schedule-to-start time-out ends an activity that no worker takes': async ({ start }) => {
    const options = { taskQueue: 'nobody', scheduleToStartTimeout: 100 };
    return endOf(await start([activity([[]], options)]));
  },
  'a schedule-to-close time-out in the back-off gives the last failure': async ({ start }) => {
    const attempts: Attempts = [[{ beat: 'kept' }, { fail: 'broken', againMs: 5_000, details: 'all' }]];
    return endOf(await start([activity(attempts, { scheduleToCloseTimeout: 2_000 })]));
  },
  'a schedule-to-close time-out of a started attempt has its details': async ({ start }) => {
    const attempts: Attempts = [[{ fail: 'broken', againMs: 1 }], [{ beat: 'kept' }, 'hang']];
    return endOf(await start([activity(attempts, { scheduleToCloseTimeout: 2_500 })]));
  },
  'an attempt that times out with no time for another one has a schedule-to-close time-out': async ({
    start,
  }) => {
    const options = {
      heartbeatTimeout: 500,
      scheduleToCloseTimeout: 2_000,
      retry: { initialInterval: 5_000 },
    };
    return endOf(await start([activity([[{ beat: 'kept' }, 'hang']], options)]));
  },
  'the details that come with a failure are for the next attempt': async ({ start }) => {
    const attempts: Attempts = [[{ beat: 'one' }, { beat: 'two' }, { fail: 'broken', againMs: 1 }], []];
    return endOf(await start([activity(attempts)]));
  },
  'details are kept when an attempt has none, and the last of all failures is told': async ({ start }) => {
    const attempts: Attempts = [
      [{ beat: 'one' }, { fail: 'first', againMs: 1 }],
      [{ fail: 'second', againMs: 1 }],
      [{ fail: 'third', details: 3 }],
    ];
    return endOf(await start([activity(attempts, { retry: { maximumAttempts: 3 } })]));
  },
  'TRY_CANCEL of a started activity is told at once': async ({ start }) => {
    const options = { cancellationType: TRY_CANCEL, heartbeatTimeout: 500 };
    const run = await start([activity([[{ cancelled: 'ends' }]], options), go, { cancel: 'a' }, end]);
    await run.untilReached('beats');
    await run.tell('go');
    await run.until((told) => has('ActivityTaskCanceled')(told) && isIdle(told));
    await run.tell('end');
    return endOf(run);
  },
  'TRY_CANCEL in the back-off is told at once': async ({ start }) => {
    const attempts: Attempts = [[{ fail: 'broken', againMs: 60_000 }]];
    const run = await start([activity(attempts, { cancellationType: TRY_CANCEL }), go, { cancel: 'a' }, end]);
    await run.until(isPending(2, false));
    await run.tell('go');
    await run.until((told) => has('ActivityTaskCanceled')(told) && isIdle(told));
    await run.tell('end');
    return endOf(run);
  },
  'a cancel in the back-off that is waited for says ACTIVITY_ID_NOT_STARTED': async ({ start }) => {
    const attempts: Attempts = [[{ fail: 'broken', againMs: 60_000 }]];
    const options = { cancellationType: WAIT_CANCELLATION_COMPLETED };
    const run = await start([activity(attempts, options), go, { cancel: 'a' }]);
    await run.until(isPending(2, false));
    await run.tell('go');
    return endOf(run);
  },
  'an activity that is cancelled before it is sent leaves no event': async ({ start }) => {
    return endOf(await start([activity([[]]), { cancel: 'a' }]));
  },
  'a cancel that is waited for gives the result of an activity that completes anyway': async ({ start }) => {
    const options = { cancellationType: WAIT_CANCELLATION_COMPLETED };
    const run = await start([activity([[{ gate: 'g' }]], options), go, { cancel: 'a' }]);
    await run.untilReached('g');
    await run.tell('go');
    await run.until(has('ActivityTaskCancelRequested'));
    run.gates.open('g');
    return endOf(run);
  },
  'a cancel that is waited for ends a failed attempt': async ({ start }) => {
    const options = { cancellationType: WAIT_CANCELLATION_COMPLETED };
    const run = await start([activity([[{ gate: 'g' }, { fail: 'broken' }]], options), go, { cancel: 'a' }]);
    await run.untilReached('g');
    await run.tell('go');
    await run.until(has('ActivityTaskCancelRequested'));
    run.gates.open('g');
    return endOf(run);
  },
  'a cancel that is waited for comes with a heartbeat': async ({ start }) => {
    const options = { cancellationType: WAIT_CANCELLATION_COMPLETED, heartbeatTimeout: 500 };
    const run = await start([activity([[{ cancelled: 'ends' }]], options), go, { cancel: 'a' }]);
    await run.untilReached('beats');
    await run.tell('go');
    return endOf(run);
  },
  'an activity that is paused in an attempt has no next one before it goes on': async ({ start }) => {
    const run = await start([activity([[{ gate: 'g' }, { fail: 'broken', againMs: 1 }], []])]);
    await run.untilReached('g');
    await run.pause();
    run.gates.open('g');
    await run.until(({ pending: [first] }) => first?.isStarted === false);
    await run.unpause();
    return endOf(run);
  },
  'a pause comes with a heartbeat': async ({ start }) => {
    const options = { heartbeatTimeout: 500 };
    const run = await start([activity([[{ cancelled: 'goes on' }]], options)]);
    await run.untilReached('beats');
    await run.pause();
    return endOf(run);
  },
  'an activity that is paused in an attempt and completes has completed': async ({ start }) => {
    const run = await start([activity([[{ gate: 'g' }]])]);
    await run.untilReached('g');
    await run.pause();
    run.gates.open('g');
    return endOf(run);
  },
  'no time-out ends a paused attempt; they count again when it goes on': async ({ start }) => {
    const options = { startToCloseTimeout: 1_000, ...once };
    const run = await start([activity([[{ gate: 'g' }]], options), { timer: 't', ms: 2_000 }]);
    await run.untilReached('g');
    await run.pause();
    await run.until((told) => has('TimerFired')(told) && isIdle(told));
    await run.unpause();
    return endOf(run);
  },
  'a paused attempt needs no heartbeat': async ({ start }) => {
    const options = { heartbeatTimeout: 1_000, ...once };
    const run = await start([activity([[{ gate: 'g' }]], options), { timer: 't', ms: 2_000 }]);
    await run.untilReached('g');
    await run.pause();
    await run.until((told) => has('TimerFired')(told) && isIdle(told));
    run.gates.open('g');
    return endOf(run);
  },
  'a paused activity has no schedule-to-close time-out before it goes on': async ({ start }) => {
    const attempts: Attempts = [[{ gate: 'g' }, { fail: 'broken', againMs: 1 }], [{ gate: 'h' }]];
    const options = { scheduleToCloseTimeout: 1_500 };
    const run = await start([activity(attempts, options), { timer: 't', ms: 2_000 }]);
    await run.untilReached('g');
    await run.pause();
    run.gates.open('g');
    await run.until((told) => has('TimerFired')(told) && isIdle(told));
    await run.unpause();
    return endOf(run);
  },
  'a paused started attempt has no schedule-to-close time-out': async ({ start }) => {
    const options = { scheduleToCloseTimeout: 1_500 };
    const run = await start([activity([[{ gate: 'g' }]], options), { timer: 't', ms: 2_000 }]);
    await run.untilReached('g');
    await run.pause();
    await run.until((told) => has('TimerFired')(told) && isIdle(told));
    run.gates.open('g');
    return endOf(run);
  },
  'after a reset the report of an earlier attempt of the same number counts': async ({ start }) => {
    const options = { startToCloseTimeout: 1_000, retry: { initialInterval: 60_000 } };
    const run = await start([activity([['own gate']], options)]);
    await run.until(isPending(2, false));
    await run.resetActivity();
    await run.untilReached('a, begun 2');
    run.gates.open('a, begun 1');
    return endOf(run);
  },
  'a reset in the back-off begins the attempts anew, at once, and the details stay': async ({ start }) => {
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
  'a reset of a started first attempt does not count its failure': async ({ start }) => {
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
  'a reset of a later attempt that is started refuses its report': async ({ start }) => {
    const attempts: Attempts = [[{ fail: 'one', againMs: 1 }], [{ gate: 'g' }, { fail: 'two', againMs: 1 }]];
    const options = { startToCloseTimeout: 2_000, retry: { maximumAttempts: 2 } };
    const run = await start([activity(attempts, options)]);
    await run.untilReached('g');
    await run.resetActivity();
    run.gates.open('g');
    return { ...(await endOf(run)), attempts: run.gates.attempts };
  },
  'a reset of a later attempt that is started refuses its result': async ({ start }) => {
    const attempts: Attempts = [[{ fail: 'one', againMs: 1 }], [{ gate: 'g' }]];
    const options = { startToCloseTimeout: 2_000, retry: { maximumAttempts: 2 } };
    const run = await start([activity(attempts, options)]);
    await run.untilReached('g');
    await run.resetActivity();
    run.gates.open('g');
    return { ...(await endOf(run)), attempts: run.gates.attempts };
  },
  'a reset comes with a heartbeat': async ({ start }) => {
    const run = await start([activity([[{ cancelled: 'ends' }], []], { heartbeatTimeout: 500 })]);
    await run.untilReached('beats');
    await run.resetActivity();
    return { ...(await endOf(run)), attempts: run.gates.attempts };
  },
  'a started activity of one attempt gets another if it may': async ({ start }) => {
    const run = await start([activity([[{ gate: 'g' }, { fail: 'broken', againMs: 1 }], []], once)]);
    await run.untilReached('g');
    await run.allowAttempts(2);
    run.gates.open('g');
    return endOf(run);
  },
  'an activity is completed by its id while an attempt is under way': async ({ start }) => {
    const run = await start([activity([['hang']])]);
    await run.until(isPending(1, true));
    await run.completeById('by hand');
    return endOf(run);
  },
  'an activity is completed by its id in the back-off': async ({ start }) => {
    const run = await start([activity([[{ fail: 'broken', againMs: 60_000 }]])]);
    await run.until(isPending(2, false));
    await run.completeById('by hand');
    return endOf(run);
  },
  'an update that is refused leaves no event': async ({ start }) => {
    const run = await start([end]);
    await run.until(has('task'));
    const answer = await run.ask('refuse');
    const { history } = await run.told();
    await run.tell('end');
    return { answer, history, end: await endOf(run) };
  },
  'an update is accepted and completed in one task': async ({ start }) => {
    const run = await start([end]);
    await run.until(has('task'));
    const answer = await run.ask('why');
    await run.tell('end');
    return { answer, ...(await endOf(run)) };
  },
  'what comes during a task waits for its end; signals and updates are seen first': async ({ start }) => {
    const a: Step = activity([[{ gate: 'a' }]]);
    const run = await start([a, go, ...held, end]);
    await run.untilReached('a');
    await run.tell('go');
    await run.untilReached('held');
    run.gates.open('a');
    await run.until(({ pending }) => pending.length === 0);
    await run.tell('one');
    const { answer } = await run.askBehind('two');
    await run.tell('end');
    run.gates.open('held');
    return { answer: await answer, ...(await endOf(run)) };
  },
  'of several things in one task each is seen in its order': async ({ start }) => {
    const options = { cancellationType: WAIT_CANCELLATION_COMPLETED };
    const b: Step = { activity: 'b', attempts: [[{ gate: 'b' }]], options };
    const run = await start([activity([[{ gate: 'a' }]], options), b, go, ...held, { wait: 'never' }]);
    await run.untilReached('a');
    await run.untilReached('b');
    await run.tell('go');
    await run.untilReached('held');
    run.gates.open('b');
    await run.until(({ pending }) => pending.length === 1);
    await run.cancel();
    run.gates.open('a');
    await run.until(({ pending }) => pending.length === 0);
    run.gates.open('held');
    return endOf(run);
  },
  'a task that would close the workflow is taken back if something has come': async ({ start }) => {
    const run = await start(held);
    await run.untilReached('held');
    await run.tell('news');
    run.gates.open('held');
    return endOf(run);
  },
  'a cancel of a workflow cancels what it waits for': async ({ start }) => {
    const options = { cancellationType: WAIT_CANCELLATION_COMPLETED };
    const run = await start([
      activity([[{ fail: 'broken', againMs: 60_000 }]], options),
      { timer: 't', ms: 60_000 },
    ]);
    await run.until(isPending(2, false));
    await run.cancel();
    return endOf(run);
  },
  'a terminated workflow is over at once': async ({ start }) => {
    const run = await start([activity([[{ gate: 'g' }]])]);
    await run.untilReached('g');
    await run.terminate();
    return endOf(run);
  },
  'a reset to the first task applies signals and updates again': async ({ start }) => {
    const run = await start([{ info: 'ids' }, { wait: 'told: one' }, activity([[{ gate: 'g' }]]), end]);
    await run.until(has('task'));
    await run.tell('one');
    await run.untilReached('g');
    await run.ask('two');
    await run.reset(0);
    await run.until(isPending(1, true));
    run.gates.open('g');
    await run.until((told) => has('ActivityTaskCompleted')(told) && isIdle(told));
    await run.tell('end');
    return endOf(run);
  },
  'a reset schedules again what was pending, and timers go on': async ({ start }) => {
    const a: Step = activity([[{ gate: 'g' }]]);
    const run = await start([a, { timer: 't', ms: 3_000 }, { wait: 'told: one' }, end]);
    await run.untilReached('g');
    await run.tell('one');
    await run.until(({ history }) => history.filter((type) => type === 'task').length === 2);
    await run.reset(1);
    await run.until((told) => has('TimerFired')(told) && isIdle(told));
    await run.until(isPending(1, true));
    run.gates.open('g');
    await run.until((told) => has('ActivityTaskCompleted')(told) && isIdle(told));
    await run.tell('end');
    return { ...(await endOf(run)), attempts: run.gates.attempts };
  },
  'a closed workflow can be reset': async ({ start }) => {
    const run = await start([{ info: 'ids' }, end]);
    await run.until(has('task'));
    await run.tell('end');
    const before = await endOf(run);
    await run.reset(1);
    return { before, after: await endOf(run) };
  },
  'continue-as-new keeps the memo of the start and the latest search attributes': async ({ start }) => {
    const again: Step[] = [{ info: 'kept' }, { info: 'ids' }];
    const options = { memo: { from: 'start' }, phase: 'begun' };
    const run = await start([{ info: 'ids' }, { memo: { more: 1 } }, { phase: 'later' }, { again }], options);
    await run.until(({ history }) => history.includes('WorkflowExecutionCompleted'));
    return endOf(run);
  },
  'a child is started and completes': async ({ start }) => {
    const run = await start([go, { child: 'c', steps: [{ timer: 't', ms: 1 }], options: {} }]);
    await run.until(has('task'));
    await run.tell('go');
    return endOf(run);
  },
  'a child may have the id of one that has ended, if it is not forbidden': async ({ start, idOf }) => {
    const workflowId = idOf('child');
    const options = { workflowId, workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE };
    const run = await start([
      { child: 'c', steps: [], options: { workflowId } },
      { wait: 'c: ' },
      { child: 'd', steps: [], options: { workflowId } },
      { wait: 'd: ' },
      { child: 'e', steps: [], options },
    ]);
    return endOf(run);
  },
  'a child that is not abandoned is terminated with its parent': async ({ start, idOf }) => {
    const steps: Step[] = [{ timer: 't', ms: 600_000 }];
    const { TERMINATE, ABANDON } = ParentClosePolicy;
    const child = (label: string, parentClosePolicy: ParentClosePolicy): Step => ({
      child: label,
      steps,
      options: { workflowId: idOf(label), parentClosePolicy },
    });
    const run = await start([child('c', TERMINATE), child('d', ABANDON), { wait: 'never' }]);
    const children = [run.of(idOf('c')), run.of(idOf('d'))];
    for (const each of children) await each.until(has('TimerStarted'));
    await run.terminate();
    await children[0]?.until(({ isOpen }) => !isOpen);
    return Promise.all(children.map((each) => each.told()));
  },
  'a child that is terminated tells its parent': async ({ start, idOf }) => {
    const steps: Step[] = [{ timer: 't', ms: 600_000 }];
    const run = await start([{ child: 'c', steps, options: { workflowId: idOf('c') } }]);
    await run.until((told) => has('ChildWorkflowExecutionStarted')(told) && isIdle(told));
    await run.of(idOf('c')).terminate();
    return endOf(run);
  },
  'a query sees a workflow as it is': async ({ start }) => {
    const run = await start([activity([[{ gate: 'g' }]]), end]);
    await run.untilReached('g');
    await run.tell('one');
    await run.until(({ history }) => history.filter((type) => type === 'task').length === 2);
    const seen = await run.seen();
    run.gates.open('g');
    await run.until((told) => has('ActivityTaskCompleted')(told) && isIdle(told));
    await run.tell('end');
    return { seen, end: await endOf(run) };
  },
};
