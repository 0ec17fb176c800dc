import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { bundleWorkflowCode, DefaultLogger, Runtime } from '@temporalio/worker';
import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import { ServedProbes } from './probe/served';
import { playSimulated } from './probe/simulated';
import { scripts } from './probe/behaviours';
import { loadWorkflows } from './worker/workflow-code';

// Tasks that fail are what some behaviours are about.
Runtime.install({
  logger: new DefaultLogger('ERROR'),
  telemetryOptions: { logging: { filter: 'OFF', forward: {} } },
});

let workflows: ReusableVMWorkflowCreator;
let probes: ServedProbes;
const played = new Map<string, Promise<unknown>>();

beforeAll(async () => {
  const bundle = await bundleWorkflowCode({
    workflowsPath: require.resolve('./probe/workflow.ts'),
    logger: new DefaultLogger('WARN'),
  });
  probes = await ServedProbes.open(bundle);
  for (const [name, script] of Object.entries(scripts)) {
    const play = probes.play(script);
    play.catch(() => undefined);
    played.set(name, play);
  }
  await Promise.allSettled(played.values());
  workflows = await loadWorkflows(bundle.code, ['perform']);
}, 120_000);

afterAll(async () => {
  await probes.close();
});

it('explore', async () => {
  const all: Record<string, unknown> = {};
  for (const [name, script] of Object.entries(scripts)) {
    const text = (p: Promise<unknown>) =>
      p.catch(
        (e: unknown) =>
          `ERROR ${String(e)} ${String((e as Error).stack).slice(0, 600)} ${String((e as Error).cause)}`,
      );
    all[name] = {
      server: await text(played.get(name)!),
      sim: await text(playSimulated(workflows, false, script)),
      sim2: await text(playSimulated(workflows, true, script)),
    };
  }
  require('fs').writeFileSync('/tmp/explore.json', JSON.stringify(all, null, 1));
});
