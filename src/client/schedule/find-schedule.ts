import {
  type Client,
  type ScheduleDescription as TemporalSchedule,
  ScheduleNotFoundError as TemporalScheduleNotFound,
} from '@temporalio/client';
import { ValueError } from '@temporalio/common';
import { BATCH_WORKFLOW } from '../../contract/batch-workflows';
import { ScheduleNotFoundError } from './errors';

/** A schedule of follow-ups as Temporal tells it. @throws ScheduleNotFoundError */
export async function findSchedule(client: Client, scheduleId: string): Promise<TemporalSchedule> {
  const { namespace } = client.options;
  try {
    const schedule = await client.schedule.getHandle(scheduleId).describe();
    refuseForeign(scheduleId, namespace, schedule.action.workflowType);
    return schedule;
  } catch (error) {
    if (error instanceof TemporalScheduleNotFound) throw new ScheduleNotFoundError(scheduleId, namespace);
    // What can't be decoded is another service's, most likely.
    if (error instanceof ValueError) {
      const { schedule } = await client.workflowService.describeSchedule({ namespace, scheduleId });
      refuseForeign(scheduleId, namespace, schedule?.action?.startWorkflow?.workflowType?.name ?? undefined);
    }
    throw error;
  }
}

function refuseForeign(scheduleId: string, namespace: string, workflowType: string | undefined): void {
  if (workflowType !== BATCH_WORKFLOW) throw new ScheduleNotFoundError(scheduleId, namespace, workflowType);
}
