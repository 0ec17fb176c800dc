import { log, metricMeter } from '@temporalio/activity';
import type { AgentApi } from '../agent-api/client';
import { measure } from '../contract/metrics';

/** Never throws: what becomes of a message must not depend on a metric. */
export function measured(api: AgentApi): AgentApi {
  const timed = async <T extends object>(operation: 'read' | 'send', exchange: Promise<T>) => {
    const begunAt = performance.now();
    const end = await exchange;
    const answer = 'label' in end ? String(end.label) : 'job';
    try {
      measure(metricMeter, 'exchanges', 1, { operation, answer });
      measure(metricMeter, 'exchangeSeconds', (performance.now() - begunAt) / 1_000, { operation });
    } catch (error) {
      log.warn('an exchange was not counted', { error });
    }
    return end;
  };
  return {
    ...api,
    getJob: (...call) => timed('read', api.getJob(...call)),
    sendMessage: (...call) => timed('send', api.sendMessage(...call)),
  };
}
