import type { Phase } from '../../src/core/result';
import type { FollowUpRequest } from '../../src/core/request';
import type { FaultSetting, NewJob } from '../../sandbox';
import { eventually } from '../harness/eventually';
import type { Following } from '../harness/following';
import { PATIENT, ProcessEnvironment } from '../harness/process-environment';
import { temporal } from '../harness/temporal';
import { type Hold, type Side, TemporalGate } from '../harness/temporal-gate';
import type { WorkerProcess } from '../harness/worker-process';

/** How a follow-up ended, beside what the service has seen of it. */
export interface Ending {
  readonly status?: string;
  readonly type?: string;
  readonly delivery: {
    readonly verdict: string;
    readonly confirmedBy: string | null;
    readonly sends: number;
  };
  readonly evidence: string | null;
  readonly posts: number;
  readonly processed: number;
}

export async function result(following: Following): Promise<Ending> {
  const { status, followUp } = await following.result();
  const { delivery, evidence } = followUp;
  return { status, delivery, evidence, posts: following.posts().length, processed: following.processed() };
}

export async function failure(following: Following): Promise<Ending> {
  const { type, details } = await following.failure();
  const { delivery, evidence } = details.followUp;
  return { type, delivery, evidence, posts: following.posts().length, processed: following.processed() };
}

/** What the server shows of it, without the help of a worker. */
export async function showsPhase(following: Following, phase: Phase): Promise<void> {
  const shown = async (): Promise<unknown> => {
    const { typedSearchAttributes } = await following.handle.describe();
    return typedSearchAttributes.getAll().find(({ key }) => key.name === 'FollowUpPhase')?.value;
  };
  await eventually(`the phase is shown as ${phase}`, shown, {
    timeoutMs: 90_000,
    intervalMs: 100,
    until: (value) => value === phase,
  });
}

export interface Scenario {
  readonly environment: ProcessEnvironment;
  readonly following: Following;
  /** The worker that is going to die. */
  readonly worker: WorkerProcess;
}

export interface ScenarioOptions {
  readonly job?: NewJob;
  readonly asked?: Partial<FollowUpRequest>;
  readonly fault?: Omit<FaultSetting, 'projectId' | 'jobId'>;
  /** What the first worker is started with. */
  readonly env?: NodeJS.ProcessEnv;
}

/** A follow-up on a worker of its own. */
export function onWorker(
  options: ScenarioOptions,
  test: (scenario: Scenario) => Promise<void>,
): Promise<void> {
  return ProcessEnvironment.with({}, async (environment) => {
    const worker = await environment.startWorker(options.env);
    const { projectId, jobId } = environment.sandbox.addJob({ projectId: 'docs', ...options.job });
    if (options.fault !== undefined) environment.sandbox.setFault({ projectId, jobId, ...options.fault });
    const following = await environment.send({ projectId, jobId, ...PATIENT, ...options.asked });
    await test({ environment, following, worker });
  });
}

/** The same, with a gate between its worker and the server that holds some calls. */
export async function behindGate(
  [method, side]: [method: string, side: Side],
  options: ScenarioOptions,
  test: (scenario: Scenario & { gate: TemporalGate; held: Hold }) => Promise<void>,
): Promise<void> {
  const gate = await TemporalGate.open(temporal().address);
  try {
    const held = gate.hold(method, side);
    const env = { ...options.env, TEMPORAL_ADDRESS: gate.address };
    await onWorker({ ...options, env }, (scenario) => test({ ...scenario, gate, held }));
  } finally {
    await gate.close();
  }
}
