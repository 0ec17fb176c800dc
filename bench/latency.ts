import { setTimeout as sleep } from 'node:timers/promises';
import { type Contestant, FIXED } from './contestants';
import type { Ground } from './ground';
import { median, quantile } from './statistics';

/** Both in milliseconds, by the clock that caller and sandbox share. */
export interface Latency {
  /** From the caller's start to the arrival of the POST at the service. */
  readonly startToPost: number;
  /** From the arrival of the read that finds the job done to the result at the caller. */
  readonly doneToResult: number;
}

export interface LatencyFigures {
  readonly median: Latency;
  readonly p95: Latency;
}

/** Between two follow-ups: what the one before has left to do on the server is then done. */
const REST_MS = 200;

/** Follows jobs up one at a time, each done at its first read after the message. */
export async function measureLatency(
  ground: Ground,
  contestant: Contestant,
  times: number,
): Promise<LatencyFigures> {
  const latencies: Latency[] = [];
  for (let count = 0; count < times; count += 1) {
    latencies.push(await followOne(ground, contestant));
    await sleep(REST_MS);
  }
  return figuresOf(latencies);
}

async function followOne({ sandbox, client }: Ground, contestant: Contestant): Promise<Latency> {
  const { projectId, jobId } = sandbox.addJob({ projectId: 'latency', turn: { reads: 1 } });
  const startedAt = Date.now();
  const workflowId = await contestant.start(client, { projectId, jobId }, FIXED);
  await contestant.result(client, workflowId);
  const endedAt = Date.now();
  const [post] = sandbox.journal.entries({ projectId, jobId, processed: true });
  const read = sandbox.journal.entries({ projectId, jobId, operation: 'get' }).at(-1);
  return {
    startToPost: Date.parse(post?.time ?? '') - startedAt,
    doneToResult: endedAt - Date.parse(read?.time ?? ''),
  };
}

function figuresOf(latencies: readonly Latency[]): LatencyFigures {
  const column = (name: keyof Latency) => latencies.map((latency) => latency[name]);
  const each = (figure: (values: readonly number[]) => number): Latency => ({
    startToPost: figure(column('startToPost')),
    doneToResult: figure(column('doneToResult')),
  });
  return { median: each(median), p95: each((values) => quantile(values, 0.95)) };
}
