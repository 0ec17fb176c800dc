import { randomUUID } from 'node:crypto';
import type { NamedRequest } from '../../src/entries/client';
import { followUpWorkflowId } from '../../src/entries/client';
import { InMemoryFollowUpClient, type SimulatedOutcome } from '../../src/entries/testing';
import { describeClientContract, type Scenario } from './client-contract';

const scenarios = new Map<string, Scenario>();
const startedOnce = new Set<string>();

function outcomeOf({ requestId }: NamedRequest): SimulatedOutcome {
  const scenario = scenarios.get(requestId);
  const isRetry = startedOnce.has(requestId);
  startedOnce.add(requestId);
  if (scenario === 'works') return { phase: 'watching' };
  if (scenario === 'needs-decision') return { phase: 'needs-decision' };
  if (scenario === 'rejected-once' && !isRetry)
    return { end: 'FollowUpRejected', verdict: 'not-sent', httpStatus: 403 };
  return {};
}

const followUps = new InMemoryFollowUpClient(outcomeOf);
const idle = new InMemoryFollowUpClient();
idle.setAvailability('no-workers');

describeClientContract('the in-memory client', () =>
  Promise.resolve({
    ...{ followUps, idle },
    newRequest(scenario) {
      const requestId = randomUUID();
      scenarios.set(requestId, scenario);
      return { projectId: `project-${requestId}`, jobId: 'job', prompt: 'Fix the links.', requestId };
    },
    complete({ projectId, jobId, requestId }) {
      followUps.setOutcome(followUpWorkflowId(projectId, jobId, requestId), { end: 'completed' });
    },
  }),
);
