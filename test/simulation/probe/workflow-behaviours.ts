import { ActivityCancellationType } from '@temporalio/workflow';
import { activity, END, GO } from './activity-behaviours';
import { type Behaviour, SLACK } from './stage';
import type { Step } from './workflow';

const waits = { cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED };

/** In a task in which a local activity holds what comes, until its gate is opened. */
const HELD: Step = { local: 'held', attempts: 'gate held' };

const ASKED = 'Started task task UpdateAccepted UpdateCompleted Signaled task Completed';
const RESET = 'WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskFailed:RESET_WORKFLOW';

/** What a workflow is told, and when. */
export const WORKFLOW_BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  'an update that is refused leaves no event': {
    steps: [END],
    script: 'has task; ask refuse; tell end',
    shows: {
      answers: ['refused: no such question'],
      seen: ['told: end'],
      history: 'Started task Signaled task Completed',
    },
  },
  'an update is accepted and completed in one task': {
    steps: [END],
    script: 'has task; ask why; tell end',
    shows: { answers: ['answer to why'], seen: ['asked: why', 'told: end'], history: ASKED },
  },
  'an update that fails in its handler was accepted': {
    steps: [END],
    script: 'has task; ask fail; tell end',
    shows: { answers: ['refused: no answer'], seen: ['asked: fail', 'told: end'], history: ASKED },
  },
  'what comes during a task waits for its end; signals and updates are seen first': {
    steps: [activity('gate a'), GO, HELD, END],
    script: 'at a; tell go; at held; open a; pending 0; tell one; ask-behind two; tell end; open held',
    shows: {
      answers: ['answer to two'],
      seen: ['told: go', 'held: held 1', 'told: one', 'told: end', 'asked: two', 'a: a 1'],
      history:
        'Started task ActivityScheduled Signaled task MarkerRecorded ActivityStarted Signaled Signaled ActivityCompleted task UpdateAccepted UpdateCompleted Completed',
    },
  },
  'of several things in one task ends of activities are told last, in their order': {
    steps: [
      activity('gate a', waits),
      { activity: 'b', attempts: 'gate b', options: waits },
      ...[GO, HELD, 'wait never'],
    ],
    script: 'at a; at b; tell go; at held; open b; pending 1; cancel; open a; pending 0; open held',
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
  'a task that would close the workflow is taken back if something has come': {
    steps: [HELD],
    script: 'at held; tell news; open held',
    shows: {
      seen: ['told: news', 'held: held 1'],
      history:
        'Started WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskFailed:UNHANDLED_COMMAND Signaled task MarkerRecorded Completed',
    },
  },
  'a cancel of a workflow cancels what it waits for': {
    steps: [activity('fail broken 60000', waits), 'timer t 60000'],
    script: 'waits-for-attempt 2; cancel',
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
  'a terminated workflow is over at once': {
    steps: [activity('gate g')],
    script: 'at g; terminate',
    shows: { seen: [], history: 'Started task ActivityScheduled Terminated' },
  },
  'a reset to the first task applies signals and updates again': {
    steps: ['info ids', 'wait told: one', activity('gate g'), END],
    script:
      'has task; tell one; at g; ask two; reset 0; attempt 1; open g; knows ActivityCompleted; tell end',
    shows: {
      seen: ['told: one', 'asked: two', 'ids: {"isFirst":false,"continues":false}', 'a: a 1', 'told: end'],
      history: `Started ${RESET} Signaled UpdateAdmitted task UpdateAccepted UpdateCompleted ActivityScheduled ActivityStarted ActivityCompleted task Signaled task Completed`,
    },
  },
  'a reset schedules again what was pending, and timers go on': {
    steps: [activity('gate g'), `timer t ${SLACK}`, 'wait told: one', END],
    script:
      'at g; tell one; tasks 2; reset 1; knows TimerFired; attempt 1; open g; knows ActivityCompleted; tell end',
    shows: {
      seen: ['told: one', 't: over', 'a: a 1', 'told: end'],
      history: `Started task ActivityScheduled TimerStarted Signaled ${RESET} task TimerFired task ActivityStarted ActivityCompleted task Signaled task Completed`,
      attempts: [1, 1],
    },
  },
  'a closed workflow can be reset': {
    steps: ['info ids', END],
    script: 'has task; tell end; closed; see; reset 1',
    shows: {
      answers: ['ids: {"isFirst":true,"continues":false},told: end'],
      seen: ['ids: {"isFirst":false,"continues":false}', 'told: end'],
      history: `Started task Signaled ${RESET} task Completed`,
    },
  },
  'continue-as-new keeps the memo of the start and the latest search attributes': {
    memo: { from: 'start' },
    phase: 'begun',
    steps: ['info ids', 'memo more', 'phase later', { again: ['info kept', 'info ids'] }],
    script: 'has Completed',
    shows: {
      seen: ['kept: {"memo":{"from":"start"},"phase":"later"}', 'ids: {"isFirst":false,"continues":true}'],
      history: 'Started task Completed',
    },
  },
  'a query sees a workflow as it is': {
    steps: [activity('gate g'), END],
    script: 'at g; tell one; tasks 2; see; open g; knows ActivityCompleted; tell end',
    shows: {
      answers: ['told: one'],
      seen: ['told: one', 'a: a 1', 'told: end'],
      history:
        'Started task ActivityScheduled Signaled task ActivityStarted ActivityCompleted task Signaled task Completed',
    },
  },
};
