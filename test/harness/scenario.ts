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

/** A fault: the agent service processes the message, and holds its response to the POST. */
export const HOLD_AFTER_PROCESSING = {
  name: 'hold',
  operation: 'message',
  parameters: { processed: 'before' },
} as const;

export interface Scenario {
  readonly environment: ProcessEnvironment;
  readonly following: FollowUpUnderTest;
  /** The worker that the test kills, stops or separates from the Temporal server. */
  readonly worker: WorkerProcess;
  /** The gate between this worker and the Temporal server. */
  readonly gate: TemporalGate;
  /** The calls that the gate holds. */
  readonly held: Hold;
}

export interface ScenarioOptions {
  readonly job?: NewJob;
  readonly requestOverrides?: Partial<FollowUpRequest>;
  readonly fault?: JobFault;
  /** Which calls between the first worker and the Temporal server are held. */
  readonly hold?: Readonly<Parameters<TemporalGate['hold']>>;
}

/** Starts a worker process behind a gate and a follow-up on it, and runs a test with both. */
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

/** Waits until the Temporal server shows a phase of the follow-up, from the search attributes. No worker is needed. */
export async function waitForPhase({ handle }: FollowUpUnderTest, phase: Phase): Promise<void> {
  await eventually(`the search attributes have the phase ${phase}`, async () => {
    const { typedSearchAttributes } = await handle.describe();
    return typedSearchAttributes.get(keywordAttributeKey('FollowUpPhase')) === phase;
  });
}
