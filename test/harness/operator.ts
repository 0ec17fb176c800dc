import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { hasGrpcStatus } from '../../src/temporal/grpc-status';

/**
 * Makes the calls of the Temporal CLI's activity commands, as an operator does. Each method returns whether an activity of this
 * type was pending.
 */
export class Operator {
  constructor(private readonly client: Client) {}

  /** `temporal activity update-options --retry-maximum-attempts` */
  allowAttempts(workflowId: string, type: string, maximumAttempts: number): Promise<boolean> {
    const updateMask = { paths: ['retry_policy.maximum_attempts'] };
    const options = { activityOptions: { retryPolicy: { maximumAttempts } }, updateMask };
    return hasFoundActivity(
      this.service.updateActivityOptions({ ...this.activity(workflowId, type), ...options }),
    );
  }

  /** `temporal activity pause` */
  pause(workflowId: string, type: string): Promise<boolean> {
    const options = { reason: 'a test', requestId: randomUUID() };
    return hasFoundActivity(this.service.pauseActivity({ ...this.activity(workflowId, type), ...options }));
  }

  /** `temporal activity unpause` */
  unpause(workflowId: string, type: string): Promise<boolean> {
    return hasFoundActivity(this.service.unpauseActivity(this.activity(workflowId, type)));
  }

  /** `temporal activity reset`, which starts again with the first attempt */
  reset(workflowId: string, type: string): Promise<boolean> {
    return hasFoundActivity(this.service.resetActivity(this.activity(workflowId, type)));
  }

  /** `temporal activity complete` with this JSON as the result. @throws ActivityNotFoundError if the activity has ended */
  async complete(workflowId: string, type: string, json: string): Promise<boolean> {
    const { raw } = await this.client.workflow.getHandle(workflowId).describe();
    const pending = raw.pendingActivities?.find(({ activityType }) => activityType?.name === type);
    if (!pending?.activityId) return false;
    await this.client.activity.complete({ workflowId, activityId: pending.activityId }, JSON.parse(json));
    return true;
  }

  private get service() {
    return this.client.workflowService;
  }

  private activity(workflowId: string, type: string) {
    const { namespace, identity } = this.client.options;
    return { namespace, identity, execution: { workflowId }, type };
  }
}

/**
 * Returns whether the Temporal server found the activity. The server returns one of these statuses if no such activity is pending
 * or the workflow has ended.
 */
async function hasFoundActivity(call: Promise<unknown>): Promise<boolean> {
  try {
    await call;
    return true;
  } catch (error) {
    if (hasGrpcStatus(error, 'NOT_FOUND', 'INVALID_ARGUMENT', 'FAILED_PRECONDITION')) return false;
    throw error;
  }
}
