/*
 * This file has names that two programs share. A changed name breaks callers, saved filters or running workflows.
 * src/batch/memo.ts has the memo key, the updates and the chunk's workflow type of batches. result.ts has the failure types of
 * follow-ups.
 */

export const FOLLOW_UP_WORKFLOW = 'followUp';
export const BATCH_WORKFLOW = 'followUpBatch';
export const NOTIFICATION_WORKFLOW = 'followUpNotification';
export const JOB_LOCK_WORKFLOW = 'followUpJobLock';

/* The queries and updates of a follow-up. A batch also has the query `progress`. */
export const QUERY_PROGRESS = 'progress';
export const UPDATE_POLL_NOW = 'pollNow';
export const UPDATE_EXTEND_DEADLINE = 'extendDeadline';
export const UPDATE_RESOLVE_DELIVERY = 'resolveDelivery';

/*
 * The keys of the memos of follow-ups and job locks. `MEMO_RECEIPT` has the receipt and the outcome of a cancelled follow-up or
 * of a batch item.
 */
export const MEMO_RECEIPT = 'followUpReceipt';
export const MEMO_PROMPT_DIGEST = 'followUpPromptSha256';
/**
 * The start delay in milliseconds. The client writes the delay, because the workflow can't read it from Temporal, and the deadline
 * counts from the end of the delay.
 */
export const MEMO_START_DELAY = 'followUpStartDelayMs';
export const MEMO_JOB_LOCK_HOLDER = 'followUpJobLockHolder';

/** The type of the failure with which an activity requests its next attempt. */
export const POLL_AGAIN = 'PollAgain';

/** The search attributes and their types. The worker checks and registers them when it starts. */
export const SEARCH_ATTRIBUTE_TYPES = {
  FollowUpPhase: 'Keyword',
  /** The outcome, the delivery's verdict and, if a terminal status was accepted, the evidence. A filter finds each value with `=`. */
  FollowUpOutcome: 'KeywordList',
  AgentJobStatus: 'Keyword',
  AgentProject: 'Keyword',
  AgentJob: 'Keyword',
  FollowUpBatch: 'Keyword',
} as const;
export type SearchAttributeName = keyof typeof SEARCH_ATTRIBUTE_TYPES;
export const SEARCH_ATTRIBUTES = Object.keys(SEARCH_ATTRIBUTE_TYPES) as readonly SearchAttributeName[];
/** The search attributes that have one text as their value. */
export type KeywordName = Exclude<SearchAttributeName, 'FollowUpOutcome'>;

export const DEFAULT_TASK_QUEUES = {
  followUp: 'follow-up',
  agentApiRead: 'agent-api-read',
  /** Sends have a separate task queue, because sends and reads have separate rate limits. */
  agentApiSend: 'agent-api-send',
} as const;
