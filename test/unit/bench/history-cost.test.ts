import { describe, expect, it } from '@jest/globals';
import { costOf } from '../../../bench/history-cost';
import { recordedEvents } from '../../replay/recorded';

describe('the cost of a recorded history', () => {
  it('of ten polls by timers is counted event by event', () => {
    expect(costOf(recordedEvents('0.3.0', 'ten-polls-by-timers'))).toEqual({
      events: 125,
      bytes: 19_007,
      workflowTasks: 22,
      // A start, eleven timers, eleven activities, the local activity and three changes of phase.
      actions: 26,
    });
  });
});

describe('billable actions', () => {
  it('are the attempts of an activity: the first when it is scheduled, the further ones by their number', () => {
    const scheduled = { activityTaskScheduledEventAttributes: {} };

    expect(costOf([scheduled, { activityTaskStartedEventAttributes: { attempt: 7 } }]).actions).toBe(7);
    expect(costOf([scheduled, { activityTaskStartedEventAttributes: { attempt: 1 } }]).actions).toBe(1);
  });

  it('are one for all the markers of a workflow task', () => {
    const markerOf = (completed: number) => ({
      markerRecordedEventAttributes: { workflowTaskCompletedEventId: completed as never },
    });

    expect(costOf([markerOf(4), markerOf(4), markerOf(9)]).actions).toBe(2);
  });

  it('are none for what the server does by itself', () => {
    const events = [
      { timerFiredEventAttributes: {} },
      { activityTaskCompletedEventAttributes: {} },
      { workflowTaskScheduledEventAttributes: {} },
      { workflowExecutionContinuedAsNewEventAttributes: {} },
    ];

    expect(costOf(events).actions).toBe(0);
  });
});
