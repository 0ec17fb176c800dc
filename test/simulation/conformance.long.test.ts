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

// Activities that fail are what most behaviours are about.
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

/** What the real server shows of each behaviour. */
const served = new Map<string, Promise<unknown>>();
let probes: ServedProbes;

// All at once: most of them wait for the server's own timers.
beforeAll(async () => {
  probes = await ServedProbes.open(bundle);
  for (const [name, behaviour] of BEHAVIORS) {
    const seen = probes.play(name, behaviour);
    seen.catch(() => undefined);
    served.set(name, seen);
  }
});

// Before the simulation: while its clock stands for the real one, nothing real can go on.
describe('a real server shows', () => {
  afterAll(() => probes.close());

  it.each(BEHAVIORS)('that %s', async (name) => {
    await expect(served.get(name)).resolves.toHaveProperty('history');
  });
});

describe.each([
  ['the simulation shows', false],
  ['the simulation shows, where each task is replayed,', true],
])('as a real server does, %s', (_, evicts) => {
  let workflows: ReusableVMWorkflowCreator;

  beforeAll(async () => {
    workflows = await loadWorkflows(bundle.code, ['perform']);
  });

  it.each(BEHAVIORS)('that %s', async (name, behaviour) => {
    await expect(playSimulated(workflows, evicts, behaviour)).resolves.toEqual(await served.get(name));
  });
});
