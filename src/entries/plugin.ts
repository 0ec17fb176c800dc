/** The entry `agent-follow-up-plugin`: a plugin that runs follow-ups in a Temporal worker together with other workflows. */
export type { NotifyOptions } from '../activities/post-notification';
export { keyFromFile, keyFromText } from '../agent-api/secret-source';
export { createAgentApi } from '../agent-api/client';
export { FollowUpError } from '../contract/follow-up-error';
export { histogramBuckets } from '../contract/metrics';
export { SearchAttributesError } from '../temporal/server-error';
export { FollowUpPlugin, type FollowUpPluginOptions, type TaskQueues } from '../worker/plugin';
