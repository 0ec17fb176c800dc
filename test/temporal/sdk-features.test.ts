import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { WorkflowClient } from '@temporalio/client';
import * as common from '@temporalio/common';
import { WorkflowIdConflictPolicy, WorkflowIdReusePolicy } from '@temporalio/common';

/*
 * Each test fails as soon as the SDK has a feature that this project replaces. Then use the feature, and remove the replacement
 * and its row in docs/architecture.md.
 */

/** Returns a file of a package of the SDK. */
function sdkFile(name: string, file: string): string {
  const folder = path.dirname(require.resolve(`@temporalio/${name}/package.json`));
  return readFileSync(path.join(folder, 'lib', file), 'utf8');
}

/** Returns the text of an exported type without comments. */
function sdkType(name: string, file: string, type: string): string {
  const text = sdkFile(name, `${file}.d.ts`);
  const start = text.search(new RegExp(`export (?:declare )?(?:interface|type|class) ${type}\\b`));
  if (start < 0) throw new Error(`@temporalio/${name} has no type ${type} in ${file}.d.ts`);
  const end = text.indexOf('\nexport ', start);
  return text.slice(start, end < 0 ? undefined : end).replace(/\/\*[^]*?\*\//g, '');
}

it('has no public start option for a request ID (withStartRequestId)', () => {
  expect(sdkType('client', 'workflow-options', 'WorkflowOptions')).not.toMatch(/requestId/);
  expect(sdkType('common', 'workflow-options', 'CommonWorkflowOptions')).not.toMatch(/requestId/);
});

it('exports no function that decodes the payloads of a raw response (decodeFirstPayload)', () => {
  expect(Object.keys(common).filter((name) => /^decode.*payload/i.test(name))).toEqual([]);
});

it('describes no pending activities (findPendingActivity)', () => {
  expect(sdkType('client', 'types', 'WorkflowExecutionDescription')).not.toMatch(/pendingActivit/);
});

it('has no method that pauses an activity of a workflow (pauseActivity)', () => {
  const client = new WorkflowClient({ connection: {} as never });
  expect(Object.keys(client.getHandle('w')).filter((name) => /activit|pause/i.test(name))).toEqual([]);
});

it('has no method that lists the pollers of a task queue (listPollingWorkers)', () => {
  expect(sdkType('client', 'task-queue-client', 'TaskQueueClient')).not.toMatch(/describe|poller/i);
});

it('does not end a retry if its call is cancelled (StoppableConnection)', () => {
  expect(sdkFile('client', 'grpc-retry.js')).not.toMatch(/withCancel|clearTimeout/);
});

it('sends no conflict token when it updates a schedule', () => {
  const code = sdkFile('client', 'schedule-client.js');
  const [update = ''] = /async _updateSchedule\([^]*?workflowService\.updateSchedule\(/.exec(code) ?? [];
  expect(update).toContain('scheduleId');
  expect(update).not.toMatch(/conflictToken/);
});

it('has no public worker option for the timeout of a workflow activation (ACTIVATION_TIMEOUT)', () => {
  expect(sdkType('worker', 'worker-options', 'WorkerOptions')).not.toMatch(
    /isolateExecutionTimeout|deadlock/i,
  );
});

it('has no conflict policy that queues a start behind a running workflow (the job lock)', () => {
  expect(Object.keys(WorkflowIdConflictPolicy).sort()).toEqual([
    'FAIL',
    'TERMINATE_EXISTING',
    'USE_EXISTING',
  ]);
});

it('has no reuse policy that rejects an ID after the retention', () => {
  const policies = new Set(Object.values(WorkflowIdReusePolicy).filter((policy) => policy !== undefined));
  const known = [
    'ALLOW_DUPLICATE',
    'ALLOW_DUPLICATE_FAILED_ONLY',
    'REJECT_DUPLICATE',
    'TERMINATE_IF_RUNNING',
  ];
  expect([...policies].sort()).toEqual(known);
});

it('lets no workflow wait for the result of another workflow (followUpResult)', () => {
  expect(sdkType('workflow', 'workflow-handle', 'ExternalWorkflowHandle')).not.toMatch(/\bresult\b/);
});

it('passes no children to the next run of a workflow that continues as new (batches without child workflows)', () => {
  expect(sdkType('workflow', 'interfaces', 'ContinueAsNewOptions')).not.toMatch(/child/i);
});

it('does not report to a workflow that its run was made by a reset (permits that name a run)', () => {
  expect(sdkType('workflow', 'interfaces', 'WorkflowInfo')).not.toMatch(/reset/i);
});
