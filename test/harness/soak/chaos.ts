import { setTimeout as sleep } from 'node:timers/promises';
import { isGrpcServiceError, WorkflowNotFoundError } from '@temporalio/client';
import type { FaultSetting } from '../../../sandbox';
import { hasCode } from '../../../src/entries/client';
import { isTransient } from '../../../src/temporal/grpc-status';
import type { ProcessEnvironment } from '../process-environment';
import type { RestartableServer } from '../restartable-server';
import type { WorkerProcess } from '../worker-process';

/** The workers' timeout of one HTTP request, which is longer than the longest delay of a slow response below. */
export const HTTP_TIMEOUT = '7s';

/** The callers' `maxStaleness`: reads lag by up to five seconds, and the agent starts on a message up to three seconds late. */
export const MAX_STALENESS = '8s';

/**
 * About 40 % of the messages and 10 % of the reads get an error or a wrong response. Many others are slow, stale or lead to a
 * late turn.
 */
export const FAULTS: readonly FaultSetting[] = [
  ...[
    ...['http-429', 'http-503', 'redirect', 'close-before-read', 'reset', 'hang', 'truncated'],
    ...['processed-then-close', 'processed-then-reset', 'processed-then-503', 'processed-then-timeout'],
  ].map((name) => ({ name, operation: 'message', chance: 0.035 }) as const),
  { name: 'slow', operation: 'message', chance: 0.06, parameters: { delay: '6s', processed: 'before' } },
  { name: 'slow', operation: 'message', chance: 0.04, parameters: { delay: '5s', processed: 'after' } },
  { name: 'html', operation: 'message', chance: 0.02, parameters: { processed: 'yes' } },
  { name: 'stale', operation: 'message', chance: 0.2, parameters: { for: '3s' } },
  { name: 'late-take-up', operation: 'message', chance: 0.6, parameters: { upTo: '3s' } },
  ...['http-429', 'http-503', 'reset', 'hang', 'not-found', 'html'].map((name) => {
    return { name, operation: 'get', chance: 0.015 } as const;
  }),
  { name: 'slow', operation: 'get', chance: 0.03, parameters: { delay: '500ms' } },
  { name: 'lag', operation: 'get', chance: 0.5, parameters: { upTo: '5s' } },
];

/** Each restart of the Temporal server stops all clients and workers for some seconds. */
const MAX_RESTARTS = 2;

/** Two worker processes and the Temporal server. After `run`, all of them run. */
export class Machines {
  readonly counts = { kill: 0, freeze: 0, restart: 0 };
  private rejectDied: (error: Error) => void = () => undefined;
  private readonly killed = new Set<WorkerProcess>();
  /** Rejects with the output of a worker that ends although this class has not killed it. */
  readonly died = new Promise<never>((_, reject) => (this.rejectDied = reject));
  private readonly workers: WorkerProcess[] = [];

  constructor(
    private readonly environment: ProcessEnvironment,
    private readonly server: RestartableServer,
    private readonly random: () => number,
  ) {}

  async start(): Promise<void> {
    await Promise.all([this.startWorker(0), this.startWorker(1)]);
  }

  /** Kills or freezes a worker, or kills and restarts the Temporal server, every few seconds until `stop`. */
  async run(stop: AbortSignal): Promise<void> {
    // The first event always kills a worker.
    for (let event = 0; !stop.aborted; event = this.random()) {
      const index = this.random() < 0.5 ? 0 : 1;
      if (event < 0.6) await this.replace(index);
      else if (event < 0.85) await this.freeze(index, 2_000 + 8_000 * this.random());
      else if (this.counts.restart < MAX_RESTARTS) {
        await this.server.restart();
        this.counts.restart += 1;
      }
      await sleep(1_000 + 5_000 * this.random(), undefined, { signal: stop }).catch(() => undefined);
    }
  }

  private async startWorker(index: number): Promise<void> {
    const worker = await this.environment.startWorker();
    this.workers[index] = worker;
    void worker.exited.then((exit) => {
      const output = `${JSON.stringify(exit)} ${worker.stdout}${worker.stderr}`;
      if (!this.killed.has(worker)) this.rejectDied(new Error(`A worker ended: ${output}`));
    });
  }

  private async replace(index: number): Promise<void> {
    const worker = this.workers[index];
    if (worker) this.killed.add(worker);
    await worker?.stop();
    this.counts.kill += 1;
    await this.startWorker(index);
  }

  private async freeze(index: number, forMs: number): Promise<void> {
    this.workers[index]?.signal('SIGSTOP');
    await sleep(forMs);
    this.workers[index]?.signal('SIGCONT');
    this.counts.freeze += 1;
  }
}

/**
 * Starts random operations, each one within half a second after the previous one, until `stop`.
 *
 * @returns how often each operation succeeded, and under its name in brackets how often it was rejected with an expected error
 */
export async function runRandomOperations(
  operations: Readonly<Record<string, () => Promise<unknown>>>,
  random: () => number,
  stop: AbortSignal,
): Promise<Readonly<Record<string, number>>> {
  const all: Promise<string>[] = [];
  const names = Object.keys(operations);
  while (!stop.aborted) {
    const name = names[Math.floor(random() * names.length)] ?? '';
    const done = Promise.resolve(operations[name]?.()).then(
      () => name,
      (error: unknown) => {
        if (!isExpected(error)) throw new Error(name, { cause: error });
        return `(${name})`;
      },
    );
    // `Promise.all` below reports the rejection.
    done.catch(() => undefined);
    all.push(done);
    await sleep(random() * 500);
  }
  const counts: Record<string, number> = {};
  for (const outcome of await Promise.all(all)) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

/**
 * Returns whether an operation may fail with this error. The Temporal server may be unavailable, the follow-up may have ended, or
 * another client may have been first. Every other error is a bug.
 */
function isExpected(error: unknown): boolean {
  // If the client has no code for an error, the error is the cause of an UNEXPECTED_FAILURE.
  if (hasCode(error, 'UNEXPECTED_FAILURE')) return isExpected(error.cause);
  return (
    hasCode(error, 'ALREADY_ENDED', 'STILL_RUNNING', 'UPDATE_REJECTED', 'CONFLICT', 'NOT_FOUND') ||
    hasCode(error, 'UNREACHABLE', 'START_UNCONFIRMED', 'WAIT_TIMEOUT') ||
    error instanceof WorkflowNotFoundError ||
    isGrpcServiceError(error) ||
    isTransient(error)
  );
}
