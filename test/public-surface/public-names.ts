import { MEMO_BATCH } from '../../src/batch/memo';
import { EXIT_CODE } from '../../src/cli/command-outcome';
import { METRICS } from '../../src/contract/metrics';
import * as contract from '../../src/contract/names';
import { OUTCOMES } from '../../src/contract/outcome';
import { FAILURE_TYPES, PHASES } from '../../src/contract/result';
import { checkVariables, VARIABLES } from '../../src/worker/variables';
import * as workflows from '../../src/workflows';

/** Returns the names and values that users write into code, queries, dashboards, alerts, scripts and environments. */
export function createPublicNames(): object {
  const { DEFAULT_TASK_QUEUES, SEARCH_ATTRIBUTE_TYPES, ...rest } = contract;
  const names = Object.values(rest).filter((value) => typeof value === 'string');
  const metrics = Object.values(METRICS).map(({ name, kind, labels, buckets }) => [
    name,
    { kind, labels, buckets },
  ]);
  return {
    workflowTypes: Object.entries(workflows).flatMap(([name, each]) =>
      typeof each === 'function' ? [name] : [],
    ),
    queriesUpdatesAndMemos: [...names, MEMO_BATCH].sort(),
    searchAttributes: SEARCH_ATTRIBUTE_TYPES,
    taskQueues: DEFAULT_TASK_QUEUES,
    failureTypes: FAILURE_TYPES,
    phases: PHASES,
    outcomes: OUTCOMES,
    exitCodes: EXIT_CODE,
    variables: VARIABLES,
    defaults: checkVariables({ AGENT_API_BASE_URL: 'https://agents.example' }),
    metrics: Object.fromEntries(metrics) as object,
  };
}
