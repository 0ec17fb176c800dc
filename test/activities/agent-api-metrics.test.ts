import { expect, it, jest } from '@jest/globals';
import { MockActivityEnvironment } from '@temporalio/testing';
import type { AgentApi } from '../../src/agent-api/client';
import { withMetrics } from '../../src/activities/agent-api-metrics';
import { UNUSED_AGENT_API, JOB } from '../harness/fixtures';

it('a POST keeps its outcome, and is made only once, if its metrics cannot be recorded', async () => {
  const fail = () => {
    throw new Error('no such runtime');
  };
  const creates = { createCounter: fail, createGauge: fail, createHistogram: fail };
  const metricMeter = { ...creates, withTags: fail };
  const sent = { verdict: 'accepted', job: JOB } as const;
  const sendMessage = jest.fn<AgentApi['sendMessage']>().mockResolvedValue(sent);
  const environment = new MockActivityEnvironment({}, { metricMeter });
  const post = () =>
    withMetrics({ ...UNUSED_AGENT_API, sendMessage }).sendMessage({
      projectId: 'p',
      jobId: 'j',
      prompt: 'x',
    });
  await expect(environment.run(post)).resolves.toEqual(sent);
  expect(sendMessage).toHaveBeenCalledTimes(1);
});

it('the methods of a client may belong to its class', () => {
  const cooldown = jest.fn<AgentApi['cooldown']>().mockReturnValue(null);
  const instance = Object.create({ ...UNUSED_AGENT_API, cooldown }) as AgentApi;
  expect(withMetrics(instance).cooldown('p')).toBeNull();
  expect(cooldown).toHaveBeenCalledWith('p');
});
