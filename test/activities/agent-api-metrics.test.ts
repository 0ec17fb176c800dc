import { expect, it, jest } from '@jest/globals';
import { MockActivityEnvironment } from '@temporalio/testing';
import type { AgentApi } from '../../src/agent-api/client';
import { withMetrics } from '../../src/activities/agent-api-metrics';
import { UNUSED_AGENT_API, JOB } from '../harness/fixtures';

it('a metric that can not be recorded does not change what a POST has proved', async () => {
  const refuse = () => {
    throw new Error('no such runtime');
  };
  const creates = { createCounter: refuse, createGauge: refuse, createHistogram: refuse };
  const metricMeter = { ...creates, withTags: refuse };
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
