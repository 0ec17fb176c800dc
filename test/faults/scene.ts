import type { Phase } from '../../src/core/result';
import type { FollowUpRequest } from '../../src/core/request';
import type { FaultSetting, NewJob } from '../../sandbox';
import { eventually } from '../harness/eventually';
import type { Following } from '../harness/following';
import { PATIENT, ProcessHouse } from '../harness/process-house';
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

export interface Scene {
  readonly house: ProcessHouse;
  readonly following: Following;
  /** The worker that is going to die. */
  readonly worker: WorkerProcess;
}

export interface Plot {
  readonly job?: NewJob;
  readonly asked?: Partial<FollowUpRequest>;
  readonly fault?: Omit<FaultSetting, 'projectId' | 'jobId'>;
  /** What the first worker is started with. */
  readonly env?: NodeJS.ProcessEnv;
}

/** A follow-up on a worker of its own. */
export function onWorker(plot: Plot, test: (scene: Scene) => Promise<void>): Promise<void> {
  return ProcessHouse.with({}, async (house) => {
    const worker = await house.startWorker(plot.env);
    const { projectId, jobId } = house.sandbox.addJob({ projectId: 'docs', ...plot.job });
    if (plot.fault !== undefined) house.sandbox.setFault({ projectId, jobId, ...plot.fault });
    const following = await house.send({ projectId, jobId, ...PATIENT, ...plot.asked });
    await test({ house, following, worker });
  });
}

/** The same, with a gate between its worker and the server that holds some calls. */
export async function behindGate(
  [method, side]: [method: string, side: Side],
  plot: Plot,
  test: (scene: Scene & { gate: TemporalGate; held: Hold }) => Promise<void>,
): Promise<void> {
  const gate = await TemporalGate.open(temporal().address);
  try {
    const held = gate.hold(method, side);
    const env = { ...plot.env, TEMPORAL_ADDRESS: gate.address };
    await onWorker({ ...plot, env }, (scene) => test({ ...scene, gate, held }));
  } finally {
    await gate.close();
  }
}
