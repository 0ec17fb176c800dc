import { keywordAttributeKey } from '../../src/contract/follow-up-start-options';
import type { Phase } from '../../src/contract/result';
import type { FollowUpRequest } from '../../src/contract/request';
import type { NewJob } from '../../sandbox';
import { eventually } from '../../tools/lib/eventually';
import type { FollowUpUnderTest, JobFault } from './follow-up-under-test';
import { WORKER_LOSS_OPTIONS, ProcessEnvironment } from './process-environment';
import { temporal } from './temporal';
import { type Hold, TemporalGate } from './temporal-gate';
import type { WorkerProcess } from './worker-process';

/** A POST that hangs, having been processed. */
export const HOLD_AFTER_PROCESSING = {
  name: 'hold',
  operation: 'message',
  parameters: { processed: 'before' },
} as const;

export interface Scenario {
  readonly environment: ProcessEnvironment;
  readonly following: FollowUpUnderTest;
  /** The worker that something happens to. */
  readonly worker: WorkerProcess;
  /** Between that worker and the server. */
  readonly gate: TemporalGate;
  /** What the gate holds. */
  readonly held: Hold;
}

export interface ScenarioOptions {
  readonly job?: NewJob;
  readonly requestOverrides?: Partial<FollowUpRequest>;
  readonly fault?: JobFault;
  /** The calls between the first worker and the server that are held. */
  readonly hold?: Readonly<Parameters<TemporalGate['hold']>>;
}

/** A follow-up on a worker of its own, behind a gate. */
export async function withWorker(
  { job, requestOverrides, fault, hold = ['no method', 'call'] }: ScenarioOptions,
  test: (scenario: Scenario) => Promise<void>,
): Promise<void> {
  const gate = await TemporalGate.open(temporal().address);
  await ProcessEnvironment.with({}, async (environment) => {
    const held = gate.hold(...hold);
    const worker = await environment.startWorker({ TEMPORAL_ADDRESS: gate.address });
    const following = await environment.follow(
      job,
      { ...WORKER_LOSS_OPTIONS, ...requestOverrides },
      ...(fault ? [fault] : []),
    );
    await test({ environment, following, worker, gate, held });
  }).finally(() => gate.close());
}

/** What the server shows of it, without the help of a worker. */
export async function waitForPhase({ handle }: FollowUpUnderTest, phase: Phase): Promise<void> {
  await eventually(`the phase is shown as ${phase}`, async () => {
    const { typedSearchAttributes } = await handle.describe();
    return typedSearchAttributes.get(keywordAttributeKey('FollowUpPhase')) === phase;
  });
}
