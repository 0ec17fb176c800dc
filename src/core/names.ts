/* Every name that two programs share: changing one breaks callers, saved filters or running workflows. */

export const FOLLOW_UP_WORKFLOW = 'followUp';
export const BATCH_WORKFLOW = 'followUpBatch';
export const NOTICE_WORKFLOW = 'followUpNotice';
export const TURN_WORKFLOW = 'followUpTurn';

export const QUERY_PROGRESS = 'progress';
export const UPDATE_POLL_NOW = 'pollNow';
export const UPDATE_EXTEND_DEADLINE = 'extendDeadline';
export const UPDATE_RESOLVE_DELIVERY = 'resolveDelivery';

/* Memos: of a cancelled follow-up its receipt, of an item of a batch its end; of a start, and of a turn. */
export const MEMO_RECEIPT = 'followUp';
export const MEMO_PROMPT_DIGEST = 'followUpPromptSha256';
export const MEMO_TURN_HOLDER = 'followUpTurnHolder';

/** The type of the failure with which an activity that polls asks for its next attempt. */
export const NO_CHANGE = 'NoChange';

/** All of type Keyword. The worker checks and registers them at its start. */
export const SEARCH_ATTRIBUTES = [
  'FollowUpPhase',
  'FollowUpOutcome',
  'AgentJobStatus',
  'AgentProject',
  'AgentJob',
  'FollowUpBatch',
] as const;
export type SearchAttributeName = (typeof SEARCH_ATTRIBUTES)[number];

export const DEFAULT_TASK_QUEUES = {
  followUp: 'follow-up',
  agentApi: 'agent-api',
  /** Sends and reads have limits of their own. */
  agentApiSend: 'agent-api-send',
} as const;
