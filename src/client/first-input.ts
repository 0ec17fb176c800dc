import { decodeFromPayloadsAtIndex } from '@temporalio/common/lib/internal-non-workflow';
import type { Client } from '@temporalio/client';
import { hasGrpcStatus } from './grpc-status';

export interface FirstEvent {
  readonly workflowType: string;
  /** The identity of the client that started the run. */
  readonly identity: string;
  /** The argument of the workflow, as its caller gave it. */
  readonly input: unknown;
  /** The run with which the chain of continued-as-new runs began. */
  readonly firstRunId: string;
}

/**
 * The event with which a run began; undefined where the run is gone, as runs are when the namespace's retention has
 * passed since their end.
 */
export async function readFirstEvent(
  client: Client,
  workflowId: string,
  runId: string,
): Promise<FirstEvent | undefined> {
  const { namespace, loadedDataConverter } = client.options;
  try {
    const { history } = await client.workflowService.getWorkflowExecutionHistory({
      namespace,
      execution: { workflowId, runId },
      maximumPageSize: 1,
    });
    const started = history?.events?.[0]?.workflowExecutionStartedEventAttributes;
    if (!started) return undefined;
    // As the SDK's own client decodes, so that payload codecs (encryption, compression) of the caller apply.
    const context = { type: 'workflow', namespace, workflowId } as const;
    const input = await decodeFromPayloadsAtIndex(loadedDataConverter, 0, started.input?.payloads, context);
    return {
      workflowType: started.workflowType?.name ?? '',
      identity: started.identity ?? '',
      input,
      firstRunId: started.firstExecutionRunId ?? runId,
    };
  } catch (error) {
    if (hasGrpcStatus(error, 'NOT_FOUND')) return undefined;
    throw error;
  }
}
