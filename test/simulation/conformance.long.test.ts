import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  bundleWorkflowCode,
  DefaultLogger,
  Runtime,
  type WorkflowBundleWithSourceMap,
} from '@temporalio/worker';
import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import { ACTIVITY_BEHAVIOURS } from './probe/activity-behaviours';
import { ServedProbes } from './probe/served';
import { playSimulated } from './probe/simulated';
import { WORKFLOW_BEHAVIOURS } from './probe/workflow-behaviours';
import { loadWorkflows } from './worker/workflow-code';

const BEHAVIOURS = Object.entries({ ...ACTIVITY_BEHAVIOURS, ...WORKFLOW_BEHAVIOURS });

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

describe('a real server', () => {
  let probes: ServedProbes;
  /** All at once: most of them wait for the server's own timers. */
  const played = new Map<string, Promise<unknown>>();

  beforeAll(async () => {
    probes = await ServedProbes.open(bundle);
    for (const [name, behaviour] of BEHAVIOURS) {
      const play = probes.play(behaviour);
      // Its own test tells it.
      play.catch(() => undefined);
      played.set(name, play);
    }
  });

  afterAll(async () => {
    await probes.close();
  });

  it.each(BEHAVIOURS)('shows that %s', async (name, { shows }) => {
    await expect(played.get(name)).resolves.toMatchObject(shows);
  });
});

// After the real one: while its clock stands for the real one, nothing real can go on.
describe.each([
  ['the simulation', false],
  ['the simulation, where each task is replayed,', true],
])('%s', (_, evicts) => {
  let workflows: ReusableVMWorkflowCreator;

  beforeAll(async () => {
    workflows = await loadWorkflows(bundle.code, ['perform']);
  });

  it.each(BEHAVIOURS)('shows that %s', async (_name, behaviour) => {
    await expect(playSimulated(workflows, evicts, behaviour)).resolves.toMatchObject(behaviour.shows);
  });
});
