/**
 * The workflows of a team's worker with the plugin. The plugin bundles this file instead of the team's `workflowsPath`, and webpack
 * resolves the module name below to the `workflowsPath`. A `default` export handles the workflow types that no other export has.
 */
/* eslint-disable @typescript-eslint/no-restricted-imports -- The name below exists only in the bundle. */
export * from './index';
// @ts-expect-error -- The name exists only in the bundle.
export * from 'agent-follow-up-team-workflows';
// @ts-expect-error -- The name exists only in the bundle.
export { default } from 'agent-follow-up-team-workflows';
