import { CompleteAsyncError, Context, heartbeat } from '@temporalio/activity';
import { ActivityNotFoundError, type Client } from '@temporalio/client';
import type { ApplicationFailure } from '@temporalio/common';

/**
 * Fails the attempt with `failure`, whose details the server also keeps as heartbeat details for the next attempt.
 *
 * `RespondActivityTaskFailed` has a field for them that the SDK (1.24) does not set. A heartbeat before the failure does
 * the same with one more call, one more update of the workflow's state and one more billable action for each poll (a fifth
 * of what a retry costs the server: docs/performance.md). So the attempt reports its failure itself, through the client's
 * own encoding, and tells the SDK that it is completed asynchronously. Where the server refuses, the heartbeat comes before.
 *
 * @throws CompleteAsyncError, or `failure` where the SDK is to report it
 */
export async function failWithDetails(failure: ApplicationFailure): Promise<never> {
  const { info, client } = Context.current();
  const { namespace, workflowExecution, activityId } = info;
  const { workflowId } = workflowExecution ?? { workflowId: '' };
  const serializationContext = {
    type: 'activity',
    namespace,
    workflowId,
    activityId,
    isLocal: false,
  } as const;
  try {
    await withDetails(client).fail(info.taskToken, failure, { serializationContext });
  } catch (error) {
    // The server no longer waits for this attempt: nothing is lost by what is reported now.
    if (!(error instanceof ActivityNotFoundError))
      for (const details of failure.details ?? []) heartbeat(details);
    throw failure;
  }
  throw new CompleteAsyncError();
}

/** The client's way to complete activities, with the encoded details of a failure as heartbeat details beside. */
function withDetails({ activity, workflowService }: Client): Client['activity'] {
  const service = Object.create(workflowService, {
    respondActivityTaskFailed: {
      value: (request: Parameters<typeof workflowService.respondActivityTaskFailed>[0]) =>
        workflowService.respondActivityTaskFailed({
          ...request,
          lastHeartbeatDetails: request.failure?.applicationFailureInfo?.details ?? null,
        }),
    },
  }) as typeof workflowService;
  return Object.create(activity, { workflowService: { value: service } }) as typeof activity;
}
