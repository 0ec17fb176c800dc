import {
  ActivityCancellationType,
  type ActivityOptions,
  ParentClosePolicy,
  WorkflowIdReusePolicy,
} from '@temporalio/workflow';
import type { Attempts } from './activities';
import { END, endOf, GO, has, isIdle, isPending, SLACK, type Behaviour } from './stage';
import type { Step } from './workflow';

const { WAIT_CANCELLATION_COMPLETED } = ActivityCancellationType;

/** In a task in which a local activity holds what comes, until its gate is opened. */
const HELD: Step = { local: 'held', attempts: [[{ gate: 'held' }]] };

function activity(attempts: Attempts, options: ActivityOptions = {}): Step {
  return { activity: 'a', attempts, options };
}

/** What a workflow is told, and when. */
export const WORKFLOW_BEHAVIOURS: readonly Behaviour[] = [
  {
    name: 'an update that is refused leaves no event',
    script: async ({ start }) => {
      const run = await start([END]);
      await run.until(has('task'));
      const answer = await run.ask('refuse');
      const { history } = await run.told();
      await run.tell('end');
      return { answer, before: history.join(' '), ...(await endOf(run)) };
    },
    shows: {
      answer: 'refused: no such question',
      before: 'Started task',
      seen: ['told: end'],
      history: 'Started task Signaled task Completed',
    },
  },
  {
    name: 'an update is accepted and completed in one task',
    script: async ({ start }) => {
      const run = await start([END]);
      await run.until(has('task'));
      const answer = await run.ask('why');
      await run.tell('end');
      return { answer, ...(await endOf(run)) };
    },
    shows: {
      answer: 'answer to why',
      seen: ['asked: why', 'told: end'],
      history: 'Started task task UpdateAccepted UpdateCompleted Signaled task Completed',
    },
  },
  {
    name: 'an update that fails in its handler was accepted',
    script: async ({ start }) => {
      const run = await start([END]);
      await run.until(has('task'));
      const answer = await run.ask('fail');
      await run.tell('end');
      return { answer, ...(await endOf(run)) };
    },
    shows: {
      answer: 'refused: no answer',
      seen: ['asked: fail', 'told: end'],
      history: 'Started task task UpdateAccepted UpdateCompleted Signaled task Completed',
    },
  },
  {
    name: 'what comes during a task waits for its end; signals and updates are seen first',
    script: async ({ start }) => {
      const a: Step = activity([[{ gate: 'a' }]]);
      const run = await start([a, GO, HELD, END]);
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
    shows: {
      answer: 'answer to two',
      seen: ['told: go', 'held: held 1', 'told: one', 'told: end', 'asked: two', 'a: a 1'],
      history:
        'Started task ActivityScheduled Signaled task MarkerRecorded ActivityStarted Signaled Signaled ActivityCompleted task UpdateAccepted UpdateCompleted Completed',
    },
  },
  {
    name: 'of several things in one task ends of activities are told last, in their order',
    script: async ({ start }) => {
      const options = { cancellationType: WAIT_CANCELLATION_COMPLETED };
      const b: Step = { activity: 'b', attempts: [[{ gate: 'b' }]], options };
      const run = await start([activity([[{ gate: 'a' }]], options), b, GO, HELD, { wait: 'never' }]);
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
    shows: {
      seen: [
        'told: go',
        'held: held 1',
        'workflow: CancelledFailure "Workflow cancelled"',
        'b: b 1',
        'a: a 1',
      ],
      history:
        'Started task ActivityScheduled ActivityScheduled Signaled task MarkerRecorded ActivityStarted CancelRequested ActivityStarted ActivityCompleted ActivityCompleted task Canceled',
    },
  },
  {
    name: 'a task that would close the workflow is taken back if something has come',
    script: async ({ start }) => {
      const run = await start([HELD]);
      await run.untilReached('held');
      await run.tell('news');
      run.gates.open('held');
      return endOf(run);
    },
    shows: {
      seen: ['told: news', 'held: held 1'],
      history:
        'Started WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskFailed:UNHANDLED_COMMAND Signaled task MarkerRecorded Completed',
    },
  },
  {
    name: 'a cancel of a workflow cancels what it waits for',
    script: async ({ start }) => {
      const options = { cancellationType: WAIT_CANCELLATION_COMPLETED };
      const run = await start([
        activity([[{ fail: 'broken', againMs: 60_000 }]], options),
        { timer: 't', ms: 60_000 },
      ]);
      await run.until(isPending(2, false));
      await run.cancel();
      return endOf(run);
    },
    shows: {
      seen: [
        'workflow: CancelledFailure "Workflow cancelled"',
        't: CancelledFailure "Workflow cancelled"',
        'a: ActivityFailure "Activity cancelled" CANCEL_REQUESTED < CancelledFailure "" ["ACTIVITY_ID_NOT_STARTED"]',
      ],
      history:
        'Started task ActivityScheduled TimerStarted CancelRequested task ActivityCancelRequested TimerCanceled ActivityCanceled task Completed',
    },
  },
  {
    name: 'a terminated workflow is over at once',
    script: async ({ start }) => {
      const run = await start([activity([[{ gate: 'g' }]])]);
      await run.untilReached('g');
      await run.terminate();
      return endOf(run);
    },
    shows: { seen: [], history: 'Started task ActivityScheduled Terminated' },
  },
  {
    name: 'a reset to the first task applies signals and updates again',
    script: async ({ start }) => {
      const run = await start([{ info: 'ids' }, { wait: 'told: one' }, activity([[{ gate: 'g' }]]), END]);
      await run.until(has('task'));
      await run.tell('one');
      await run.untilReached('g');
      await run.ask('two');
      await run.reset(0);
      await run.until(isPending(1, true));
      run.gates.open('g');
      await run.until((told) => has('ActivityCompleted')(told) && isIdle(told));
      await run.tell('end');
      return endOf(run);
    },
    shows: {
      seen: ['told: one', 'asked: two', 'ids: {"isFirst":false,"continues":false}', 'a: a 1', 'told: end'],
      history:
        'Started WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskFailed:RESET_WORKFLOW Signaled UpdateAdmitted task UpdateAccepted UpdateCompleted ActivityScheduled ActivityStarted ActivityCompleted task Signaled task Completed',
    },
  },
  {
    name: 'a reset schedules again what was pending, and timers go on',
    script: async ({ start }) => {
      const a: Step = activity([[{ gate: 'g' }]]);
      const run = await start([a, { timer: 't', ms: SLACK }, { wait: 'told: one' }, END]);
      await run.untilReached('g');
      await run.tell('one');
      await run.until(({ history }) => history.filter((type) => type === 'task').length === 2);
      await run.reset(1);
      await run.until((told) => has('TimerFired')(told) && isIdle(told));
      await run.until(isPending(1, true));
      run.gates.open('g');
      await run.until((told) => has('ActivityCompleted')(told) && isIdle(told));
      await run.tell('end');
      return { ...(await endOf(run)), attempts: run.gates.attempts };
    },
    shows: {
      seen: ['told: one', 't: over', 'a: a 1', 'told: end'],
      history:
        'Started task ActivityScheduled TimerStarted Signaled WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskFailed:RESET_WORKFLOW task TimerFired task ActivityStarted ActivityCompleted task Signaled task Completed',
      attempts: [1, 1],
    },
  },
  {
    name: 'a closed workflow can be reset',
    script: async ({ start }) => {
      const run = await start([{ info: 'ids' }, END]);
      await run.until(has('task'));
      await run.tell('end');
      const before = await endOf(run);
      await run.reset(1);
      return { before: before.seen, ...(await endOf(run)) };
    },
    shows: {
      before: ['ids: {"isFirst":true,"continues":false}', 'told: end'],
      seen: ['ids: {"isFirst":false,"continues":false}', 'told: end'],
      history:
        'Started task Signaled WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskFailed:RESET_WORKFLOW task Completed',
    },
  },
  {
    name: 'continue-as-new keeps the memo of the start and the latest search attributes',
    script: async ({ start }) => {
      const again: Step[] = [{ info: 'kept' }, { info: 'ids' }];
      const options = { memo: { from: 'start' }, phase: 'begun' };
      const run = await start(
        [{ info: 'ids' }, { memo: { more: 1 } }, { phase: 'later' }, { again }],
        options,
      );
      await run.until(({ history }) => history.includes('Completed'));
      return endOf(run);
    },
    shows: {
      seen: ['kept: {"memo":{"from":"start"},"phase":"later"}', 'ids: {"isFirst":false,"continues":true}'],
      history: 'Started task Completed',
    },
  },
  {
    name: 'a child is started and completes',
    script: async ({ start }) => {
      const run = await start([GO, { child: 'c', steps: [{ timer: 't', ms: 1 }], options: {} }]);
      await run.until(has('task'));
      await run.tell('go');
      return endOf(run);
    },
    shows: {
      seen: ['told: go', 'c: started', 'c: t: over'],
      history:
        'Started task Signaled task StartChildInitiated ChildStarted task ChildCompleted task Completed',
    },
  },
  {
    name: 'a child may have the id of one that has ended, if it is not forbidden',
    script: async ({ start, idOf }) => {
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
    shows: {
      seen: [
        'c: started',
        'c: ',
        'd: started',
        'd: ',
        'e: WorkflowExecutionAlreadyStartedError "Workflow execution already started"',
      ],
      history:
        'Started task StartChildInitiated ChildStarted task ChildCompleted task StartChildInitiated ChildStarted task ChildCompleted task StartChildInitiated StartChildFailed task Completed',
    },
  },
  {
    name: 'a child that is not abandoned is terminated with its parent',
    script: async ({ start, idOf }) => {
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
      return Promise.all(children.map(async (each) => (await each.told()).history.join(' ')));
    },
    shows: ['Started task TimerStarted Terminated', 'Started task TimerStarted'],
  },
  {
    name: 'a child that is terminated tells its parent',
    script: async ({ start, idOf }) => {
      const steps: Step[] = [{ timer: 't', ms: 600_000 }];
      const run = await start([{ child: 'c', steps, options: { workflowId: idOf('c') } }]);
      await run.until((told) => has('ChildStarted')(told) && isIdle(told));
      await run.of(idOf('c')).terminate();
      return endOf(run);
    },
    shows: {
      seen: [
        'c: started',
        'c: ChildWorkflowFailure "Child Workflow execution failed" NON_RETRYABLE_FAILURE < TerminatedFailure "Terminated"',
      ],
      history: 'Started task StartChildInitiated ChildStarted task ChildTerminated task Completed',
    },
  },
  {
    name: 'a query sees a workflow as it is',
    script: async ({ start }) => {
      const run = await start([activity([[{ gate: 'g' }]]), END]);
      await run.untilReached('g');
      await run.tell('one');
      await run.until(({ history }) => history.filter((type) => type === 'task').length === 2);
      const seen = await run.seen();
      run.gates.open('g');
      await run.until((told) => has('ActivityCompleted')(told) && isIdle(told));
      await run.tell('end');
      return { asked: seen, ...(await endOf(run)) };
    },
    shows: {
      asked: ['told: one'],
      seen: ['told: one', 'a: a 1', 'told: end'],
      history:
        'Started task ActivityScheduled Signaled task ActivityStarted ActivityCompleted task Signaled task Completed',
    },
  },
];
