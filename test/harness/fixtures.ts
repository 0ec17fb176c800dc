import type { AgentApi } from '../../src/agent-api/client';
import type { BatchItemResult } from '../../src/batch/progress';
import type { AgentJob } from '../../src/contract/job';
import type { Receipt } from '../../src/contract/result';

/** An agent service for tests that make no request: every request fails. */
export const UNUSED_AGENT_API: AgentApi = {
  timeoutMs: 4_000,
  getJob: () => Promise.reject(new Error('not called')),
  sendMessage: () => Promise.reject(new Error('not called')),
  cooldown: () => null,
  close: () => Promise.resolve(),
};

/** A job with only the fields that the agent service must return. */
export const JOB: AgentJob = {
  id: 'j',
  status: 'active',
  source: { repository: null, ref: null },
  model: null,
  prLink: null,
  createdAt: null,
  archivedAt: null,
};

/** The receipt of a turn that a read returned as `active`. */
export const RECEIPT: Receipt = {
  requestId: 'r',
  delivery: { verdict: 'accepted', confirmedBy: 'response', sends: 1 },
  evidence: 'seen-active',
  promptDigest: 'a'.repeat(64),
  baseline: { status: 'completed', prLink: null, archivedAt: null },
  polls: 7,
  sentAt: '2030-01-01T00:00:00.000Z',
  endedAt: '2030-01-01T00:01:00.000Z',
  responseCounts: { active: 6, completed: 1 },
};

/** The result of a batch item whose job is completed. */
export const ITEM_RESULT: BatchItemResult = {
  workflowId: 'w',
  projectId: 'p',
  jobId: 'j',
  requestId: 'r',
  outcome: 'completed',
  delivery: 'accepted',
  evidence: null,
  prLink: null,
  message: null,
  endedAt: '2026-01-01T00:00:00.000Z',
};
