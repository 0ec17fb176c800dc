/* Every name that two programs share: changing one breaks callers, saved filters or running workflows. */

export const FOLLOW_UP_WORKFLOW = 'followUp';
export const BATCH_WORKFLOW = 'followUpBatch';
export const NOTIFICATION_WORKFLOW = 'followUpNotification';
export const JOB_LOCK_WORKFLOW = 'followUpJobLock';

export const QUERY_PROGRESS = 'progress';
export const UPDATE_POLL_NOW = 'pollNow';
export const UPDATE_EXTEND_DEADLINE = 'extendDeadline';
export const UPDATE_RESOLVE_DELIVERY = 'resolveDelivery';

/* Memos. A cancelled follow-up leaves its receipt, and a batch item its receipt and outcome. */
export const MEMO_RECEIPT = 'followUpReceipt';
export const MEMO_PROMPT_DIGEST = 'followUpPromptSha256';
/** The start delay in milliseconds, which the client writes: the workflow can't see it, and its deadline counts after it. */
export const MEMO_START_DELAY = 'followUpStartDelayMs';
export const MEMO_JOB_LOCK_HOLDER = 'followUpJobLockHolder';

/** The type of the failure with which an activity that polls asks for its next attempt. */
export const POLL_AGAIN = 'PollAgain';

/** The search attributes and their types. The worker checks and registers them when it starts. */
export const SEARCH_ATTRIBUTE_TYPES = {
  FollowUpPhase: 'Keyword',
  /** The outcome and the delivery's verdict: a filter finds each of the two values with `=`. */
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
  /** Sends and reads have limits of their own. */
  agentApiSend: 'agent-api-send',
} as const;
