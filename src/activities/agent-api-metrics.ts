import { log, metricMeter } from '@temporalio/activity';
import type { AgentApi } from '../agent-api/client';
import type { JobResponse } from '../contract/activities';
import type { PostOutcome } from '../contract/send-result';
import { isKnownStatus } from '../contract/job';
import { recordMetric } from '../contract/metrics';

/**
 * Counts and times each request to the agent service, and counts the reads that returned an unknown status. If a metric can't be
 * recorded, the response is still returned, because the POST may have been processed.
 */
export function withMetrics(api: AgentApi): AgentApi {
  const recorded = async <T extends JobResponse | PostOutcome>(
    operation: 'read' | 'send',
    request: Promise<T>,
  ) => {
    const startedAt = performance.now();
    const response = await request;
    const result = 'label' in response ? response.label : 'job';
    try {
      recordMetric(metricMeter, 'requests', 1, { operation, result });
      recordMetric(metricMeter, 'requestDuration', (performance.now() - startedAt) / 1_000, { operation });
      if ('kind' in response && response.kind === 'job' && !isKnownStatus(response.job.status))
        recordMetric(metricMeter, 'unknownStatusReads', 1, { status: response.job.status });
    } catch (error) {
      log.warn('the metrics of a request could not be recorded', { error });
    }
    return response;
  };
  // The methods are not copied, because a client may be an instance of a class.
  return {
    timeoutMs: api.timeoutMs,
    getJob: (...call) => recorded('read', api.getJob(...call)),
    sendMessage: (...call) => recorded('send', api.sendMessage(...call)),
    cooldown: (projectId) => api.cooldown(projectId),
    close: () => api.close(),
  };
}
