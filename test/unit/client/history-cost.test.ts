import { describe, expect, it } from '@jest/globals';
import {
  type BillableActions,
  costOf,
  type HistoryEvent,
  sumActions,
  totalOf,
} from '../../../src/client/cost';
import { recordedEvents } from '../../replay/recorded';

const started = { workflowExecutionStartedEventAttributes: {} };
const timer = { timerStartedEventAttributes: {} };
const task = { workflowTaskStartedEventAttributes: {} };
const NONE = sumActions([]);

function actionsOf(...events: HistoryEvent[]): BillableActions {
  return costOf(events).actions;
}

describe('the cost of a recorded history', () => {
  it('of ten polls by timers is counted event by event', () => {
    expect(costOf(recordedEvents('0.3.0', 'ten-polls-by-timers'))).toEqual({
      events: 127,
      bytes: 19_201,
      workflowTasks: 22,
      actions: {
        ...NONE,
        starts: 1,
        timers: 11,
        activities: 11,
        localActivities: 1,
        searchAttributeUpserts: 3,
      },
    });
  });

  it('counts updates that were accepted', () => {
    expect(costOf(recordedEvents('0.3.0', 'steered-by-updates')).actions.updates).toBe(2);
  });

  it('bills a continued run as a start, and not once more in the run before', () => {
    const runs = ['continued-as-new', 'continued-as-new-run-2'];
    const starts = runs.map((name) => costOf(recordedEvents('0.3.0', name)).actions.starts);

    expect(starts).toEqual([1, 1]);
  });
});

describe('billable actions', () => {
  it('are the attempts of an activity: the first when it is scheduled, the further ones by their number', () => {
    const scheduled = { activityTaskScheduledEventAttributes: {} };
    const seventh = { activityTaskStartedEventAttributes: { attempt: 7 } };

    expect(actionsOf(scheduled, seventh)).toEqual({ ...NONE, activities: 1, activityRetries: 6 });
    expect(actionsOf(scheduled, { activityTaskStartedEventAttributes: { attempt: 1 } })).toEqual({
      ...NONE,
      activities: 1,
    });
  });

  it('are one for all the markers of a workflow task', () => {
    const markerOf = (completed: number) => ({
      markerRecordedEventAttributes: { workflowTaskCompletedEventId: completed as never },
    });

    expect(actionsOf(markerOf(4), markerOf(4), markerOf(9))).toEqual({ ...NONE, localActivities: 2 });
  });

  it('are the retries of local activities, at most 100 for each workflow task', () => {
    const retried = (times: number) => ({
      workflowTaskCompletedEventAttributes: {
        meteringMetadata: { nonfirstLocalActivityExecutionAttempts: times },
      },
    });

    expect(actionsOf(retried(3), retried(250), retried(0))).toEqual({ ...NONE, localActivityRetries: 103 });
  });

  it('are upserts of search attributes, except the one that only notes the version', () => {
    const upsert = (...names: string[]) => ({
      upsertWorkflowSearchAttributesEventAttributes: {
        searchAttributes: { indexedFields: Object.fromEntries(names.map((name) => [name, {}])) },
      },
    });

    expect(actionsOf(upsert('FollowUpPhase', 'AgentJobStatus'), upsert('TemporalChangeVersion'))).toEqual({
      ...NONE,
      searchAttributeUpserts: 1,
    });
  });

  it('are signals, updates, and changes of options', () => {
    const events = [
      { workflowExecutionSignaledEventAttributes: {} },
      { workflowExecutionUpdateAcceptedEventAttributes: {} },
      { workflowExecutionUpdateCompletedEventAttributes: {} },
      { workflowExecutionOptionsUpdatedEventAttributes: {} },
    ];

    expect(actionsOf(...events)).toEqual({ ...NONE, signals: 1, updates: 1, optionUpdates: 1 });
  });

  it('are two more for a run that a schedule started', () => {
    const searchAttributes = { indexedFields: { TemporalScheduledById: {} } };

    expect(actionsOf({ workflowExecutionStartedEventAttributes: { searchAttributes } })).toEqual({
      ...NONE,
      starts: 1,
      schedules: 2,
    });
  });

  it('of a reset run are those since its last reset, for the rest was done by the run before', () => {
    const reset = { workflowTaskFailedEventAttributes: { baseRunId: 'the-run-before' } };
    const failed = { workflowTaskFailedEventAttributes: {} };
    const events = [started, task, timer, reset, timer, task, reset, timer, failed, task, timer];

    expect(costOf(events)).toEqual({
      events: 11,
      bytes: 0,
      workflowTasks: 1,
      actions: { ...NONE, resets: 1, timers: 2 },
    });
  });

  it('are none for what the server does by itself, and for cancellations', () => {
    const events = [
      { timerFiredEventAttributes: {} },
      { timerCanceledEventAttributes: {} },
      { activityTaskCompletedEventAttributes: {} },
      { activityTaskCancelRequestedEventAttributes: {} },
      { workflowTaskScheduledEventAttributes: {} },
      { workflowExecutionCancelRequestedEventAttributes: {} },
      { workflowExecutionContinuedAsNewEventAttributes: {} },
      { workflowPropertiesModifiedEventAttributes: {} },
    ];

    expect(totalOf(actionsOf(...events))).toBe(0);
  });
});
