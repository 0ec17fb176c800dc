import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  bundleWorkflowCode,
  DefaultLogger,
  Runtime,
  type WorkflowBundleWithSourceMap,
} from '@temporalio/worker';
import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import { BEHAVIORS } from './probe/behaviors';
import { ServedProbes } from './probe/real-server';
import { playSimulated } from './probe/simulated-server';
import { loadWorkflows } from './worker/workflow-code';

// Logs are off, because most behaviors fail activities on purpose.
Runtime.install({
  logger: new DefaultLogger('ERROR'),
  telemetryOptions: { logging: { filter: 'OFF', forward: {} } },
});

let bundle: WorkflowBundleWithSourceMap;

beforeAll(async () => {
  bundle = await bundleWorkflowCode({
    workflowsPath: require.resolve('./probe/workflow.ts'),
    logger: new DefaultLogger('WARN'),
  });
});

/** The results of each behavior on the real Temporal server. */
const served = new Map<string, Promise<unknown>>();
let probes: ServedProbes;

// All behaviors run at the same time, because most of them wait for timers of the Temporal server.
beforeAll(async () => {
  probes = await ServedProbes.open(bundle);
  for (const [name, behavior] of BEHAVIORS) {
    const result = probes.play(name, behavior);
    result.catch(() => undefined);
    served.set(name, result);
  }
});

// The tests with the real server run before the simulation, because real servers can't work while the virtual clock replaces the real one.
describe('the real Temporal server has the behavior', () => {
  afterAll(() => probes.close());

  it.each(BEHAVIORS)('“%s”', async (name) => {
    await expect(served.get(name)).resolves.toHaveProperty('history');
  });
});

describe.each([
  ['with cached workflows', false],
  ['with a replay before each workflow task', true],
])('the simulation has the same results as the real Temporal server, %s', (_, evicts) => {
  let workflows: ReusableVMWorkflowCreator;

  beforeAll(async () => {
    workflows = await loadWorkflows(bundle.code, ['perform']);
  });

  it.each(BEHAVIORS)('for “%s”', async (name, behavior) => {
    await expect(playSimulated(workflows, evicts, behavior)).resolves.toEqual(await served.get(name));
  });
});
