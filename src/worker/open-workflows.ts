import { noopMetricMeter } from '@temporalio/common';
import { type NativeConnection, Runtime, type Worker } from '@temporalio/worker';
import { recordMetric, type OpenState } from '../contract/metrics';
import { OPEN_PHASES } from '../contract/result';
import { findGrpcError } from '../temporal/grpc-status';
import { BATCH_WORKFLOW, FOLLOW_UP_WORKFLOW } from '../contract/names';
import { createOpenFollowUps } from './open-follow-ups';
import { UnchangedFollowUps } from './unchanged-follow-ups';

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

/** The times without a change are measured with every fifth count, because an operator needs these times only if they reach hours. */
const COUNTS_PER_CHANGE_MEASUREMENT = 5;

/**
 * Records the number of open workflows and, for each phase, the longest time without a change as metrics, until `ending` is
 * aborted. Does nothing if the process has no metrics. A failure is logged once until its reason changes, because a gateway may
 * reject each of these calls.
 */
export function startOpenWorkflowGauges({ connection, options }: Worker, ending: AbortSignal): void {
  const { logger, metricMeter } = Runtime.instance();
  if (connection === undefined || metricMeter === noopMetricMeter) return;
  const { namespace } = options;
  const unchanged = new UnchangedFollowUps(createOpenFollowUps(connection, namespace));
  const lastProblems = new Map<string, string>();
  const measure = async (call: string, record: () => Promise<void>): Promise<void> => {
    try {
      await record();
      lastProblems.delete(call);
    } catch (error) {
      // The end of the worker closes the connection, and a call in progress then fails.
      if (ending.aborted) return;
      const problem = findGrpcError(error)?.text ?? String(error);
      const message = `the metrics of open follow-ups are not updated, because the call ${call} fails: ${problem}`;
      if (problem !== lastProblems.get(call)) logger.warn(message, { namespace });
      lastProblems.set(call, problem);
    }
  };
  let rounds = 0;
  const measureAll = async (): Promise<void> => {
    const isChangeRound = rounds % COUNTS_PER_CHANGE_MEASUREMENT === 0;
    rounds += 1;
    await measure('CountWorkflowExecutions', () => recordCounts(connection, namespace));
    if (!isChangeRound) return;
    await measure('ListWorkflowExecutions or GetWorkflowExecutionHistoryReverse', () =>
      recordLongestUnchanged(unchanged, namespace),
    );
  };
  // On a slow Temporal server, the next round is left out.
  let running: Promise<void> | undefined;
  const start = () => {
    running ??= measureAll().finally(() => (running = undefined));
  };
  start();
  const timer = setInterval(start, COUNT_INTERVAL_MS);
  ending.addEventListener('abort', () => {
    clearInterval(timer);
  });
}

async function recordCounts(connection: NativeConnection, namespace: string): Promise<void> {
  const { metricMeter } = Runtime.instance();
  await connection.withDeadline(Date.now() + COUNT_TIMEOUT_MS, async () => {
    for (const [state, query] of Object.entries(QUERIES)) {
      const running = { namespace, query: `${query} AND ExecutionStatus = 'Running'` };
      const { count } = await connection.workflowService.countWorkflowExecutions(running);
      recordMetric(metricMeter, 'open', Number(count), { state }, { namespace });
    }
  });
  recordMetric(metricMeter, 'openCountedAt', Date.now() / 1_000, {}, { namespace });
}

/**
 * Records for each phase the longest time without a change. If the time of a phase can't be found, 0 is recorded, because an old
 * value would stay indefinitely.
 *
 * @throws the first error, after all phases are recorded
 */
async function recordLongestUnchanged(unchanged: UnchangedFollowUps, namespace: string): Promise<void> {
  const { metricMeter } = Runtime.instance();
  const failures: unknown[] = [];
  for (const phase of OPEN_PHASES) {
    const now = Date.now();
    const changedAt = await unchanged.findEarliestLastChange(phase, now).catch((error: unknown) => {
      failures.push(error);
      return null;
    });
    const ageMs = changedAt === null ? 0 : now - changedAt;
    recordMetric(metricMeter, 'oldestUnchanged', ageMs / 1_000, { phase }, { namespace });
  }
  if (failures.length > 0) throw failures[0];
}
