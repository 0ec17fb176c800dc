import { markdownCode as code } from './markdown';
import type { SearchAttributeName } from './names';

/**
 * What the Web UI shows of a follow-up from its start on, whoever starts it. The prompt is never shown. The server takes
 * 400 bytes of summary; the names fill at most the 255 bytes of a workflow id.
 */
export function followUpSummary({ projectId, jobId }: Names): string {
  return `Follow-up to job ${code(jobId)} of project ${code(projectId)}`;
}

/** The attributes that a follow-up is found by before a worker has seen it. */
export function followUpAttributes({ projectId, jobId }: Names): [SearchAttributeName, string][] {
  return [
    // As the workflow would set it first: one event less in every history.
    ['FollowUpPhase', 'baseline'],
    ['AgentProject', projectId],
    ['AgentJob', jobId],
  ];
}

export function batchSummary(items: number): string {
  return `Batch of ${items} ${items === 1 ? 'follow-up' : 'follow-ups'}`;
}

export function pageSummary(number: number, items: number): string {
  return `Page ${number} of a batch: ${items} ${items === 1 ? 'item' : 'items'}`;
}

interface Names {
  readonly projectId: string;
  readonly jobId: string;
}
