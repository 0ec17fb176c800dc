/** The entry `agent-follow-up-plugin`: runs follow-ups in a Temporal worker that has other workflows too. */
export type { NotifyOptions } from '../activities/post-notification';
export { keyFromFile, keyFromText } from '../agent-api/api-key';
export { createAgentApi } from '../agent-api/client';
export { FollowUpError } from '../contract/follow-up-error';
export { histogramBuckets } from '../contract/metrics';
export { SearchAttributesError } from '../temporal/server-error';
export { FollowUpPlugin, type FollowUpPluginOptions, type TaskQueues } from '../worker/plugin';
