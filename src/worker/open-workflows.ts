import { noopMetricMeter } from '@temporalio/common';
import { Runtime, type Worker } from '@temporalio/worker';
import { recordMetric, type OpenState } from '../contract/metrics';
import { findGrpcError } from '../temporal/grpc-status';
import { BATCH_WORKFLOW, FOLLOW_UP_WORKFLOW } from '../contract/names';

/** The interval between two counts. Each time, a worker makes five count requests to the Temporal server. */
export const COUNT_INTERVAL_MS = 60_000;
export const COUNT_TIMEOUT_MS = 10_000;

const FOLLOW_UPS = `WorkflowType = '${FOLLOW_UP_WORKFLOW}'`;
const QUERIES: Readonly<Record<OpenState, string>> = {
  any: FOLLOW_UPS,
  // Until the job was read once, a send has the phase `starting`.
  sending: `${FOLLOW_UPS} AND FollowUpPhase IN ('starting', 'sending')`,
  'needs-decision': `${FOLLOW_UPS} AND FollowUpPhase = 'needs-decision'`,
  unauthorized: `${FOLLOW_UPS} AND FollowUpPhase = 'unauthorized'`,
  batch: `WorkflowType = '${BATCH_WORKFLOW}'`,
};

const COUNT_FAILED =
  'the metrics of open follow-ups are not updated, because the call CountWorkflowExecutions fails';

/**
 * Records the number of open workflows as metrics, once a minute, until the returned timer is cleared. Returns undefined if the
 * process has no metrics. A failure is logged once until its reason changes, because a gateway may reject each of these calls.
 */
export function startOpenWorkflowGauges({ connection, options }: Worker): NodeJS.Timeout | undefined {
  const { logger, metricMeter } = Runtime.instance();
  if (connection === undefined || metricMeter === noopMetricMeter) return undefined;
  const { namespace } = options;
  let lastProblem: string | undefined;
  const countOpenWorkflows = async (): Promise<void> => {
    try {
      await connection.withDeadline(Date.now() + COUNT_TIMEOUT_MS, async () => {
        for (const [state, query] of Object.entries(QUERIES)) {
          const running = { namespace, query: `${query} AND ExecutionStatus = 'Running'` };
          const { count } = await connection.workflowService.countWorkflowExecutions(running);
          recordMetric(metricMeter, 'open', Number(count), { state }, { namespace });
        }
      });
      recordMetric(metricMeter, 'openCountedAt', Date.now() / 1_000, {}, { namespace });
      lastProblem = undefined;
    } catch (error) {
      const problem = findGrpcError(error)?.text ?? String(error);
      if (problem !== lastProblem) logger.warn(`${COUNT_FAILED}: ${problem}`, { namespace });
      lastProblem = problem;
    }
  };
  void countOpenWorkflows();
  return setInterval(() => void countOpenWorkflows(), COUNT_INTERVAL_MS);
}
