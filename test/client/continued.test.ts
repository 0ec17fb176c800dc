import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { ConflictError } from '../../src/client';
import { planOf } from '../../src/client/start';
import { compareDigest } from '../../src/temporal/existing-run';
import { type DevServer, startDevServer } from '../../dev/dev-server';
import { eventually } from '../harness/eventually';
import { Environment } from '../harness/environment';
import { temporal } from '../harness/temporal';
import { clientOf, request } from './client-under-test';

let server: DevServer;
let environment: Environment;

beforeAll(async () => {
  // So low that a watch of some polls reaches it, as a long one reaches the default of 4,096 events.
  const dynamicConfig = { 'limit.historyCount.suggestContinueAsNew': 45 };
  server = await startDevServer({ cli: temporal().cli, searchAttributes: true, dynamicConfig });
  environment = await Environment.open({ address: server.address });
});
afterAll(async () => {
  await environment.close();
  await server.stop();
});

it('a follow-up that continued as new is attached to, compared and waited for', async () => {
  const asked = request(environment, null);
  const other = { ...asked, prompt: 'Something else.' };
  const followUps = clientOf(environment);
  const { workflowId, runId: firstRun } = await followUps.start(asked);
  const result = followUps.getHandle(workflowId).result();
  const currentRun = async (): Promise<string> => (await followUps.getHandle(workflowId).describe()).runId;
  await eventually('it continues as new', currentRun, { until: (runId) => runId !== firstRun });

  expect(await followUps.start({ ...asked, whenActive: 'wait' })).toMatchObject({
    attached: 'running',
    differences: ['whenActive is send there, not wait'],
    promptCompared: true,
  });
  await expect(followUps.start(other)).rejects.toThrow(ConflictError);

  // What remains to compare by when retention has taken the first run. (A deletion takes the dev server half a minute.)
  const { memo } = await environment.client.workflow.getHandle(workflowId).describe();
  expect(compareDigest(planOf(asked), memo)).toEqual({ samePrompt: true, differences: [] });
  expect(compareDigest(planOf(other), memo)).toEqual({ samePrompt: false });

  environment.sandbox.changeJob(asked, { status: 'completed' });
  expect(await result).toMatchObject({ status: 'completed', followUp: { requestId: asked.requestId } });
});
