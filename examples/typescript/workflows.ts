/** Your own workflow, which runs a follow-up as a child and calls your own activity with the outcome. */
import { ApplicationFailure, proxyActivities } from '@temporalio/workflow';
import { executeFollowUp, type FollowUpRequest } from 'agent-follow-up-client/workflow';

interface YourActivities {
  announce(text: string): Promise<void>;
}

const { announce } = proxyActivities<YourActivities>({ startToCloseTimeout: '1 minute' });

/** @param taskQueue the task queue of the follow-ups' workers */
export async function followUpAndAnnounce(
  request: FollowUpRequest & { readonly requestId: string },
  taskQueue = 'follow-up',
): Promise<void> {
  try {
    const { status, prLink } = await executeFollowUp(request, { taskQueue });
    await announce(`${request.jobId}: ${status}, ${prLink ?? 'no pull request'}`);
  } catch (error) {
    if (!(error instanceof ApplicationFailure)) throw error;
    await announce(`${request.jobId}: ${error.type}: ${error.message}`);
  }
}
