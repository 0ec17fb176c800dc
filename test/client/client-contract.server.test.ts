import { randomUUID } from 'node:crypto';
import { FollowUpClient } from '../../src/entries/client';
import { ENDLESS_TURN, type JobFault } from '../harness/follow-up-under-test';
import { sharedEnvironment } from '../harness/shared-environment';
import { describeClientContract, type Scenario } from './client-contract';

const { open } = sharedEnvironment();

const ASK = { onUnknownDelivery: 'ask', reconcileTimeout: '300ms', maxStaleness: '300ms' } as const;

/** The faults of the sandbox in each scenario. */
const FAULTS: Readonly<Record<Scenario, readonly JobFault[]>> = {
  completes: [],
  works: [],
  'needs-decision': [{ name: 'reset', operation: 'message', times: 1 }],
  'rejected-once': [{ name: 'status', operation: 'get', times: 1, parameters: { code: 403 } }],
};

describeClientContract('the client', async () => {
  const environment = await open();
  const { client, followUps, sandbox } = environment;
  return {
    followUps,
    idle: new FollowUpClient(client, { taskQueue: `no-worker-${randomUUID()}` }),
    newRequest(scenario) {
      const isEndless = scenario === 'works' || scenario === 'needs-decision';
      const request = environment.newRequest(isEndless ? ENDLESS_TURN : {});
      for (const fault of FAULTS[scenario])
        sandbox.setFault({ ...fault, projectId: request.projectId, jobId: request.jobId });
      return { ...request, ...(scenario === 'needs-decision' && ASK) };
    },
    complete(request) {
      sandbox.changeJob(request, { status: 'completed', prLink: 'https://example.test/pull/7' });
    },
  };
});
