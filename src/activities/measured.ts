import { log, metricMeter } from '@temporalio/activity';
import type { AgentApi } from '../agent-api/client';
import { COOLING_DOWN } from '../agent-api/cooldowns';
import { type LabelsOf, measure, type MetricKey } from '../core/metrics';

/** As {@link measure}, but it never throws: what becomes of a message must not depend on a metric. */
function recordMetric<K extends MetricKey>(key: K, value: number, labels: LabelsOf<K>): void {
  try {
    measure(metricMeter, key, value, labels);
  } catch (error) {
    log.warn('a metric was not recorded', { metric: key, error });
  }
}

export function measured(api: AgentApi): AgentApi {
  const timed = async <T extends object>(operation: 'read' | 'send', exchange: Promise<T>) => {
    const begunAt = performance.now();
    const end = await exchange;
    const answer = 'label' in end ? String(end.label) : 'job';
    if (answer === COOLING_DOWN) return end;
    recordMetric('exchanges', 1, { operation, answer });
    recordMetric('exchangeSeconds', (performance.now() - begunAt) / 1_000, { operation });
    return end;
  };
  return {
    ...api,
    getJob: (...call) => timed('read', api.getJob(...call)),
    sendMessage: (...call) => timed('send', api.sendMessage(...call)),
  };
}
