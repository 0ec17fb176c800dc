/** Every name that two programs share: changing one breaks callers, saved filters or running workflows. */

export const FOLLOW_UP_WORKFLOW = 'followUp';
export const BATCH_WORKFLOW = 'followUpBatch';
export const NOTICE_WORKFLOW = 'followUpNotice';
/** The turn at a job, as a lock: open as long as the follow-up that has taken it. */
export const TURN_WORKFLOW = 'followUpTurn';

export const QUERY_PROGRESS = 'progress';
export const UPDATE_POLL_NOW = 'pollNow';
export const UPDATE_EXTEND_DEADLINE = 'extendDeadline';
export const UPDATE_RESOLVE_DELIVERY = 'resolveDelivery';

/**
 * Where a follow-up that is cancelled leaves its receipt, as the TypeScript SDK carries no details on a cancelled workflow; and
 * an item of a batch, however it ends, how it ended.
 */
export const MEMO_RECEIPT = 'followUp';

/** The memo that a start leaves: the SHA-256 of its message. It outlives the first run and its history. */
export const MEMO_PROMPT_DIGEST = 'followUpPromptSha256';

/** The memo of a turn: who has taken it. */
export const MEMO_TURN_HOLDER = 'followUpTurnHolder';

/** The type of the failure with which an activity that polls asks for its next attempt. */
export const NO_CHANGE = 'NoChange';

/** The search attributes, all of type Keyword. The worker checks and registers them at its start. */
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
  /** Workflow tasks. */
  followUp: 'follow-up',
  /** HTTP activities that read. */
  agentApi: 'agent-api',
  /** The HTTP activity that sends: sends and reads have limits of their own. */
  agentApiSend: 'agent-api-send',
} as const;
